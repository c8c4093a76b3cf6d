//! Erasing buyers whose orders are old.

use chrono::TimeDelta;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use kernel::StoreError;

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

/// Does to many orders what `orders::SellerOrder::erase_buyer` does to one part: the rule, `updated_at` included, lives there,
/// and a test holds this statement to it.
///
/// An order that somebody else is erasing is passed over; parts are locked by seller, as every transaction does.
struct Erase {
    microseconds: i64,
    batch: i64,
}

statement!(Erase => ():
    "with clock as materialized (select api_now() as at), \
     aged as materialized (select order_id from orders where buyer_erased_at is null \
       and created_at < (select at from clock) - ", microseconds: BigInt,
    " * interval '1 microsecond' order by created_at limit ", batch: BigInt,
    " for no key update skip locked), \
     parts as materialized (select p.seller_id, p.order_id from aged join seller_orders p on p.order_id = aged.order_id \
       where p.buyer is not null or p.shipping_address is not null order by p.seller_id, p.order_id for no key update of p), \
     erased as (update seller_orders p set buyer = null, shipping_address = null, \
       updated_at = case when p.paid_at is null then p.updated_at else greatest(p.updated_at, (select at from clock)) end \
       from parts where p.seller_id = parts.seller_id and p.order_id = parts.order_id), \
     forgotten as (delete from mails using aged where mails.order_id = aged.order_id) \
     update orders set buyer_erased_at = (select at from clock) from aged where orders.order_id = aged.order_id");

/// Erases one batch in a transaction of the caller's.
pub(crate) async fn erase_buyers(tx: &Tx, age: TimeDelta) -> Result<ErasedBuyers, StoreError> {
    let erase = Erase {
        microseconds: age.num_microseconds().unwrap_or(i64::MAX),
        batch: ORDERS,
    };
    let orders = tx.run(erase.execute(&mut tx.connection())).await?;
    let full = usize::try_from(ORDERS).map_err(StoreError::unexpected)?;
    Ok(ErasedBuyers {
        orders,
        more: orders >= full,
    })
}
