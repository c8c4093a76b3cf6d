//! Erasing buyers whose orders are old.

use chrono::TimeDelta;
use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use uuid::Uuid;

use crate::{statement::statement, transaction::Tx};

/// Up to so many orders go at a time: their rows are locked meanwhile, and sellers may be waiting for them.
const ORDERS: i64 = 100;

/// What one batch has erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErasedBuyers {
    /// Orders whose buyers are gone now.
    pub orders: usize,
    /// True when more is left than one batch holds.
    pub more: bool,
}

/// Takes the oldest orders whose buyers are due. One that somebody else is erasing is passed over.
struct Take {
    microseconds: i64,
    batch: i64,
}

statement!(Take => SqlUuid:
    "select order_id from orders where buyer_erased_at is null \
       and created_at < (select api_now()) - ", microseconds: BigInt,
    " * interval '1 microsecond' order by created_at limit ", batch: BigInt,
    " for no key update skip locked");

/// Does to many orders what `orders::SellerOrder::erase_buyer` does to one part: the rule, `updated_at` included, lives there,
/// and a test holds this statement to it. Parts are locked by seller, as every transaction does.
struct Erase<'a> {
    orders: &'a [Uuid],
}

statement!(Erase<'_> => ():
    "with clock as materialized (select api_now() as at), \
     parts as materialized (select seller_id, order_id from seller_orders where order_id = any(", orders: Array<SqlUuid>,
    ") and (buyer is not null or shipping_address is not null) order by seller_id, order_id for no key update) \
     update seller_orders p set buyer = null, shipping_address = null, \
       updated_at = case when p.paid_at is null then p.updated_at else greatest(p.updated_at, (select at from clock)) end \
       from parts where p.seller_id = parts.seller_id and p.order_id = parts.order_id");

/// A mail may have been queued by whoever held a part until just now. So this has to be a statement after [`Erase`], which
/// sees what was committed while that waited: from then on no transaction finds a buyer to write to.
struct Forget<'a> {
    orders: &'a [Uuid],
}

statement!(Forget<'_> => (): "delete from mails where order_id = any(", orders: Array<SqlUuid>, ")");

struct Mark<'a> {
    orders: &'a [Uuid],
}

statement!(Mark<'_> => ():
    "update orders set buyer_erased_at = (select api_now()) where order_id = any(", orders: Array<SqlUuid>, ")");

/// Erases one batch in a transaction of the caller's.
pub(crate) async fn erase_buyers(tx: &Tx, age: TimeDelta) -> Result<ErasedBuyers, StoreError> {
    let take = Take {
        microseconds: age.num_microseconds().unwrap_or(i64::MAX),
        batch: ORDERS,
    };
    let mut connection = tx.connection();
    let orders = &*tx.run(take.get_results::<Uuid>(&mut connection)).await?;
    if !orders.is_empty() {
        tx.run(Erase { orders }.execute(&mut connection)).await?;
        tx.run(Forget { orders }.execute(&mut connection)).await?;
        tx.run(Mark { orders }.execute(&mut connection)).await?;
    }
    let full = usize::try_from(ORDERS).map_err(StoreError::unexpected)?;
    Ok(ErasedBuyers {
        orders: orders.len(),
        more: orders.len() >= full,
    })
}
