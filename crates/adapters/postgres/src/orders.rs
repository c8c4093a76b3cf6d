//! Orders, one row per seller's part: reading and saving them.

mod documents;
mod row;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, Keyset, MailId, Page, PageSize, Precondition, SellerId, StoreError};
use orders::{
    BuyerSearch, OrderDirectory, OrderEvent, OrderFilter, OrderId, OrderNumber, OrderReader, OrderRef,
    OrderStatus, OrderStore, SellerOrder, ShipmentMail, TrackingStatus,
};
use usecases::{Announcement, Transaction};
use uuid::Uuid;

use self::documents::Document;
use self::row::{PartRow, instants, part_columns};
use crate::batch::{BatchQuery, Batcher, answers_by_place, answers_by_seller};
use crate::connection::Connector;
use crate::connection::error::store_error;
use crate::connection::pool::Autocommit;
use crate::layout::Layout;
use crate::listing::{Filter, List, Listed};
use crate::parcels;
use crate::slow_reads::SlowReads;
use crate::sql::sql;
use crate::unit_of_work::{Tx, Write, changing, changing_any, expect_rows};

pub(crate) use self::row::{order_number, parse_carrier, parse_tracking_number};

/// Reads a seller's parts for one server thread.
pub(crate) struct OrdersReader {
    by_id: Batcher<ById>,
    list: List<ByPlacing>,
}

impl OrdersReader {
    pub(crate) fn new(connector: &Arc<Connector>, slow: &Arc<SlowReads>, layout: Layout) -> Self {
        Self {
            by_id: Batcher::new(ById(layout), Arc::clone(connector)),
            list: List::new(connector, slow, layout),
        }
    }
}

#[async_trait]
impl OrderReader for OrdersReader {
    async fn order(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let number = match order {
            OrderRef::Id(id) => return self.by_id.ask((seller, id.uuid())).await,
            OrderRef::Number(number) => number.as_str(),
        };
        let seller = seller.uuid();
        let part = sql!(PartRow:
            concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller, " and number = ",
            number, "");
        self.by_id
            .connection()
            .rows(part)
            .await?
            .pop()
            .map(SellerOrder::try_from)
            .transpose()
    }

    async fn orders(
        &self,
        seller: SellerId,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError> {
        let filter = Filter {
            status: filter.status.map(OrderStatus::as_str),
            newer_than: filter.placed_after,
            updated_after: filter.updated_after,
        };
        self.list.read(seller, filter, after, size).await
    }
}

/// Parts by their orders' ids.
struct ById(Layout);

#[async_trait]
impl BatchQuery for ById {
    const NAME: &'static str = "orders";
    type Question = (SellerId, Uuid);
    type Answer = Option<SellerOrder>;

    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[(SellerId, Uuid)],
    ) -> QueryResult<Vec<Result<Option<SellerOrder>, StoreError>>> {
        if self.0 == Layout::Citus {
            let of_seller = async |seller, orders| {
                sql!((Uuid, PartRow):
                    concat!("select o.order_id, ", part_columns!(), " from seller_orders o where seller_id = "), seller,
                    " and order_id = any(", orders, ")")
                .get_results::<(Uuid, PartRow)>(&mut { connection })
                .await
            };
            return answers_by_seller(questions, of_seller).await;
        }
        let (sellers, orders): (Vec<_>, Vec<_>) =
            questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        // A subquery passes the keys, so that one plan serves lists of any length.
        let rows = sql!((i64, PartRow):
            concat!("select k.n, ", part_columns!(), " from unnest((select "), sellers, "::uuid[]), (select ", orders,
            "::uuid[])) with ordinality as k (seller_id, order_id, n) \
             join seller_orders o on o.seller_id = k.seller_id and o.order_id = k.order_id");
        let rows = rows.get_results::<(i64, PartRow)>(&mut { connection }).await?;
        Ok(answers_by_place(questions, rows, |part: &SellerOrder| {
            (part.seller, part.id.uuid())
        }))
    }
}

/// A seller's parts by placement time, without test orders.
#[derive(Clone, Copy)]
struct ByPlacing;

impl Listed for ByPlacing {
    const STATEMENT: &'static str = "order_pages";
    const TABLE: &'static str = "seller_orders o";
    const NAME: &'static str = "o";
    const COLUMNS: &'static str = part_columns!();
    const AT: &'static str = "placed_at";
    const ID: &'static str = "order_id";
    const ONLY: &'static str = " and not is_test";
    type Row = PartRow;
    type Item = SellerOrder;

    fn key(part: &SellerOrder) -> (SellerId, Keyset) {
        let (at, id) = (part.placed_at, part.id.uuid());
        (part.seller, Keyset { at, id })
    }
}

/// The order's id or number, as parameters of a statement.
fn id_or_number(order: &OrderRef) -> (Option<Uuid>, Option<&str>) {
    match order {
        OrderRef::Id(id) => (Some(id.uuid()), None),
        OrderRef::Number(number) => (None, Some(number.as_str())),
    }
}

/// The row of an order in the directory: its id and its sellers.
macro_rules! directory_row {
    ($order:expr) => {{
        let (id, number) = id_or_number($order);
        sql!((Uuid, Option<Vec<Uuid>>):
            "select order_id, sellers from orders where order_id = ", id, " or number = ", number, "")
    }};
}

/// All parts of an order, with a lock clause.
macro_rules! parts {
    ($order:expr, $lock:literal) => {{
        let (id, number) = id_or_number($order);
        sql!(PartRow:
            concat!("select ", part_columns!(), " from seller_orders o where order_id = coalesce("), id,
            ", (select order_id from orders where number = ", number, concat!(")) order by seller_id", $lock))
    }};
}

/// A seller's part of an order, with a lock clause.
macro_rules! part {
    ($seller:expr, $order:expr, $lock:literal) => {
        sql!(PartRow:
            concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), $seller, " and order_id = ",
            $order, $lock)
    };
}

/// Fails if a part of an order cannot be seen. After a crash during a commit this lasts until Citus has recovered it: half an
/// order must not pass for a whole one.
fn all_parts(parts: Vec<PartRow>, sellers: usize) -> Result<Vec<PartRow>, StoreError> {
    if parts.len() == sellers {
        return Ok(parts);
    }
    Err(StoreError::Unavailable(
        "a part of the order is not committed yet".into(),
    ))
}

/// Reads every seller's part of an order, for the marketplace.
pub(crate) struct WholeOrders {
    pub(crate) statements: Autocommit,
    pub(crate) layout: Layout,
}

impl WholeOrders {
    /// The parts on Citus, seller by seller.
    async fn distributed(&self, order: &OrderRef) -> Result<Vec<PartRow>, StoreError> {
        let known = self.statements.row(directory_row!(order)).await?;
        let (order, sellers) = known.unwrap_or_default();
        let sellers = sellers.unwrap_or_default();
        let mut parts = Vec::new();
        for &seller in &sellers {
            parts.extend(self.statements.row(part!(seller, order, "")).await?);
        }
        all_parts(parts, sellers.len())
    }
}

#[async_trait]
impl OrderDirectory for WholeOrders {
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let rows = match self.layout {
            Layout::Citus => self.distributed(order).await?,
            Layout::Single => self.statements.rows(parts!(order, "")).await?,
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }

    /// No index leads to a buyer: it would make each change of an order dearer, for a search that is made a few times a month. On Citus
    /// this goes to every shard.
    async fn find_by_buyer(
        &self,
        email: &str,
        after: Option<OrderId>,
        limit: u16,
    ) -> Result<BuyerSearch, StoreError> {
        let after = after.map_or(Uuid::nil(), OrderId::uuid);
        let rows = self.statements.rows(sql!((Uuid, Option<String>, DateTime<Utc>):
            "select order_id, case when lower(buyer->>'email') = lower(", email, ") then number end, placed_at from seller_orders \
               where order_id > ", after, " order by order_id limit ", i64::from(limit), ""));
        let rows = rows.await?;
        Ok(BuyerSearch {
            next: rows.last().map(|(order, ..)| (*order).into()),
            found: rows
                .into_iter()
                .filter_map(|(_, number, placed_at)| Some((placed_at, number?)))
                .collect(),
        })
    }
}

impl Tx {
    /// The parts on Citus, locked seller by seller.
    async fn lock_distributed(&self, order: &OrderRef) -> Result<Vec<PartRow>, StoreError> {
        let known = self.row(directory_row!(order)).await?;
        let (order, sellers) = known.unwrap_or_default();
        let sellers = sellers.unwrap_or_default();
        let mut parts = Vec::new();
        for &seller in &sellers {
            parts.extend(self.row(part!(seller, order, " for no key update")).await?);
        }
        all_parts(parts, sellers.len())
    }
}

#[async_trait]
impl OrderStore for Tx {
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let seller = seller.uuid();
        let row = match order {
            OrderRef::Id(id) => {
                let order = id.uuid();
                self.row(part!(seller, order, " for no key update")).await?
            }
            OrderRef::Number(number) => {
                let number = number.as_str();
                self.row(sql!(PartRow:
                    concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller, " and number = ",
                    number, " for no key update"))
                    .await?
            }
        };
        row.map(SellerOrder::try_from).transpose()
    }

    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let rows = match self.context().layout {
            Layout::Citus => self.lock_distributed(order).await?,
            Layout::Single => self.rows(parts!(order, " for no key update")).await?,
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }

    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        is_test: bool,
        sellers: &BTreeSet<SellerId>,
        placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let sellers = sellers.iter().map(|seller| seller.uuid()).collect::<Vec<_>>();
        // Sent at once: the caller has to know whether the number is taken.
        let opened = self.execute(sql!(():
            "insert into orders (order_id, number, is_test, sellers, created_at) values (", order.uuid(), ", ",
            number.as_str(), ", ", is_test, ", ", sellers, ", ", placed_at, ")"));
        expect_rows("orders", opened.await?, 1)
    }

    async fn save_parts(&self, mut changes: Vec<Change<SellerOrder, OrderEvent>>) -> Result<(), StoreError> {
        changes.sort_unstable_by_key(|change| (change.after.seller, change.after.id));
        self.mark_distributed_write();
        for change in changes {
            for event in &change.events {
                let announced = Announcement::of_order(change.after.seller, event, self.now());
                self.outbox().add(announced);
            }
            let parcel = parcels::track(self, &change);
            self.write_later(Box::new(SavePart {
                is_new: change.precondition == Precondition::MustNotExist,
                part: change.after,
            }));
            if let Some(parcel) = parcel {
                self.write_later(parcel);
            }
        }
        Ok(())
    }

    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError> {
        let insert = sql!(():
            "insert into mails (id, order_id, order_number, recipient, recipient_name, carrier, tracking_number) values (",
            mail.id.uuid(), ", ", mail.order.uuid(), ", ", mail.number.as_str().to_owned(), ", ", mail.to, ", ",
            mail.name, ", ", mail.carrier.as_str(), ", ", mail.tracking_number.as_str().to_owned(), ")");
        self.write_later(changing("mails", 1, insert));
        Ok(())
    }

    async fn requeue_mail(&self, mail: MailId) -> Result<Option<OrderId>, StoreError> {
        let requeue = sql!(Uuid: "update mails set due_at = api_now(), dead_at = null, attempts = 0 where id = ",
            mail.uuid(), " and dead_at is not null returning order_id");
        Ok(self.row(requeue).await?.map(OrderId::from))
    }

    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError> {
        self.write_later(changing_any(sql!(():
            "delete from mails where order_id = ", order.uuid(), "")));
        Ok(())
    }
}

/// Saves a part, new or locked.
struct SavePart {
    part: SellerOrder,
    is_new: bool,
}

#[async_trait]
impl Write for SavePart {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let part = &self.part;
        let [paid, shipped, delivered, cancelled] = instants(&part.state);
        let (seller, order) = (part.seller.uuid(), part.id.uuid());
        let parcel = part.parcel();
        let status = part.status().as_str();
        let shipment_id = parcel.map(|parcel| parcel.id.uuid());
        let shipment_at = parcel.map(|parcel| parcel.created_at);
        let already = parcel.map(|parcel| parcel.delivered_already);
        let notified = parcel.map(|parcel| parcel.buyer_notified);
        let carrier = parcel.map(|parcel| parcel.carrier.as_str());
        let number = parcel.map(|parcel| parcel.tracking_number.as_str());
        let tracking = parcel
            .and_then(|parcel| parcel.tracking_status)
            .map(TrackingStatus::as_str);
        let buyer = part.buyer.as_ref().map(Document::of_personal).transpose()?;
        let address = part.shipping_address.as_ref();
        let address = address.map(Document::of_personal).transpose()?;
        let saved = if self.is_new {
            sql!(():
                "insert into seller_orders (seller_id, order_id, placed_at, is_test, several_sellers, number, payment_method, \
                 delivery_method, items, updated_at, paid_at, shipped_at, delivered_at, cancelled_at, shipment_id, shipment_at, \
                 delivered_already, buyer_notified, status, carrier, tracking_number, tracking_status, buyer, shipping_address) \
                 values (", seller, ", ", order, ", ", part.placed_at, ", ", part.is_test, ", ", part.several_sellers,
                ", ", part.number.as_str(), ", ", part.payment_method.as_deref(), ", ", part.delivery_method.as_deref(),
                ", ", Document::of_items(&part.items)?, ", ", part.updated_at, ", ", paid, ", ", shipped, ", ", delivered,
                ", ", cancelled, ", ", shipment_id, ", ", shipment_at, ", ", already, ", ", notified, ", ", status, ", ",
                carrier, ", ", number, ", ", tracking, ", ", buyer, ", ", address, ")")
            .execute(&mut connection)
            .await
        } else {
            sql!(():
                "update seller_orders set updated_at = ", part.updated_at, ", paid_at = ", paid, ", shipped_at = ",
                shipped, ", delivered_at = ", delivered, ", cancelled_at = ", cancelled, ", shipment_id = ", shipment_id,
                ", shipment_at = ", shipment_at, ", delivered_already = ", already, ", buyer_notified = ", notified,
                ", status = ", status, ", carrier = ", carrier, ", tracking_number = ", number, ", tracking_status = ",
                tracking, ", buyer = ", buyer, ", shipping_address = ", address, " where seller_id = ", seller,
                " and order_id = ", order, "")
            .execute(&mut connection)
            .await
        };
        expect_rows("seller_orders", saved.map_err(store_error)?, 1)
    }
}
