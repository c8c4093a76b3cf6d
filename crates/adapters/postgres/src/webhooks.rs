//! Subscriptions, their delivery queues, and the history of their deliveries. This file reads and changes subscriptions.

mod ending;
mod queues;
mod recording;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SealPurpose, SellerId, StoreError};
use oauth::ClientId;
use orders::OrderId;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, Attempted, Delivery, DeliveryDirectory, DeliveryFilter, DeliveryId, DeliveryRecord,
    DeliveryState, DeliveryWithSeller, Failure, MAX_SUBSCRIPTIONS, NewDelivery, NewSubscription, Outcome,
    SellerDelivery, SellerSubscription, Subscription, SubscriptionId, SubscriptionReader, SubscriptionStore,
    Undelivered, UndeliveredFilter, WebhookEvent, WebhookSecret, WebhookUrl,
};

use crate::connection::pool::Autocommit;
use crate::sealing::Sealing;
use crate::sql::{column, row, sql};
use crate::unit_of_work::{Tx, expect_rows};

pub(crate) use self::{
    ending::{delete_subscriptions, end_subscriptions, wake_queues},
    queues::{RecentlyAsleep, StoredQueues},
};

/// The state of the queue of a subscription `s`: `live`; `suspended` while its application is suspended; `ended` if nothing
/// will ever be delivered there again. It is a correlated subquery, so that the application of each queue is looked up
/// by key, however many queues the planner estimates.
macro_rules! queue_state {
    () => {
        "case when not s.active then 'ended' else coalesce((select case \
      when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null \
        or (s.connection_generation is not null and s.connection_generation is distinct from c.generation) then 'ended' \
      when a.status = 'suspended' then 'suspended' else 'live' end \
    from applications a join sellers o on o.id = a.owner_id join sellers v on v.id = s.seller_id \
      left join connections c on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null \
    where a.client_id = s.client_id), 'ended') end"
    };
}
pub(crate) use queue_state;

/// The queues `$name (seller_id, subscription_id, value)` that have an entry in a partial index of deliveries on the two and `$value`, each with
/// its first: one step in the index for each queue, whatever the other subscriptions have. Of the seller `asked.seller`, if there is one,
/// and of another one at most.
macro_rules! queues_with {
    ($name:literal, $value:literal, $condition:literal) => {
        concat!(
            $name,
            " (seller_id, subscription_id, value) as ((select seller_id, subscription_id, ",
            $value,
            " from deliveries where ",
            $condition,
            " and seller_id >= coalesce((select seller from asked), '00000000-0000-0000-0000-000000000000') \
          order by seller_id, subscription_id, ",
            $value,
            " limit 1) \
        union all select d.* from ",
            $name,
            " q cross join lateral (select seller_id, subscription_id, ",
            $value,
            " from deliveries where ",
            $condition,
            " and (seller_id, subscription_id) > (q.seller_id, q.subscription_id) \
          order by seller_id, subscription_id, ",
            $value,
            " limit 1) d where q.seller_id = coalesce((select seller from asked), q.seller_id))"
        )
    };
}
use queues_with;

/// The columns of [`SubscriptionRow`], from the table alias `s`. A subscription that has ended is inactive, even if its row is not yet:
/// those of one application or seller are many, and follow its end in batches.
macro_rules! subscription_columns {
    () => {
        concat!(
            "s.id, s.client_id, s.url, s.events, ",
            queue_state!(),
            " <> 'ended', s.created_at"
        )
    };
}

row! {
    struct SubscriptionRow {
        id: Uuid,
        client_id: Uuid,
        url: String,
        events: Vec<String>,
        active: bool,
        created_at: DateTime<Utc>,
    }
}

impl TryFrom<SubscriptionRow> for Subscription {
    type Error = StoreError;

    fn try_from(row: SubscriptionRow) -> Result<Self, StoreError> {
        let id = SubscriptionId::from(row.id);
        let events = row.events.iter().map(|name| {
            WebhookEvent::parse(name)
                .ok_or_else(|| StoreError::corrupt("subscriptions", id, format!("event {name:?}")))
        });
        Ok(Self {
            id,
            client_id: row.client_id.into(),
            url: url(id, &row.url)?,
            events: events.collect::<Result<_, _>>()?,
            active: row.active,
            created_at: row.created_at,
        })
    }
}

/// The stored URL. Whether deliveries may go to its address is checked at each attempt.
fn url(id: SubscriptionId, text: &str) -> Result<WebhookUrl, StoreError> {
    WebhookUrl::parse(text, AddressPolicy::Any)
        .map_err(|invalid| StoreError::corrupt("subscriptions", id, format!("url {invalid}")))
}

/// Opens a subscription's secret.
fn open_secret(
    sealing: &Sealing,
    seller: SellerId,
    id: SubscriptionId,
    sealed: &[u8],
) -> Result<WebhookSecret, StoreError> {
    let corrupt = |reason: String| StoreError::corrupt("subscriptions", id, reason);
    let opened = sealing
        .sealer()?
        .open(
            SealPurpose::WebhookSecret,
            &secret_binding(seller.uuid(), id.uuid()),
            sealed,
        )
        .map_err(|cause| corrupt(cause.to_string()))?;
    let text = String::from_utf8(opened).map_err(|_| corrupt("a secret that is no text".to_owned()))?;
    WebhookSecret::parse(text).map_err(|invalid| corrupt(format!("a secret that {invalid}")))
}

/// Binds a secret to its row: moved into another row, it does not open.
pub(crate) fn secret_binding(seller: Uuid, subscription: Uuid) -> Vec<u8> {
    [seller.as_bytes().as_slice(), subscription.as_bytes()].concat()
}

/// The columns of [`DeliveryRow`], from deliveries `d` and their subscription `s`. `due_at` is null for an ended
/// subscription, even if the row still has one: its pending deliveries are stopped gradually.
macro_rules! delivery_columns {
    () => {
        concat!(
            "d.id, d.event, d.created_at, d.attempt, case when ",
            queue_state!(),
            " <> 'ended' then d.due_at end, d.delivered_at, d.response_status, d.failure, d.duration_ms"
        )
    };
}

/// Subscriptions `s` with the names of their applications, and whether these are the seller's own: without those of deleted ones, which are deleted in batches.
macro_rules! seller_subscriptions {
    () => {
        concat!(
            subscription_columns!(),
            ", a.name, a.owner_id = s.seller_id from subscriptions s join applications a on a.client_id = s.client_id and a.deleted_at is null"
        )
    };
}

fn seller_subscription(
    (row, app_name, is_own): (SubscriptionRow, String, bool),
) -> Result<SellerSubscription, StoreError> {
    let subscription = Subscription::try_from(row)?;
    Ok(SellerSubscription {
        receiver: subscription.url.shown(is_own),
        subscription,
        app_name,
    })
}

row! {
    struct DeliveryRow {
        id: Uuid,
        event: String,
        created_at: DateTime<Utc>,
        attempt: i16,
        due_at: Option<DateTime<Utc>>,
        delivered_at: Option<DateTime<Utc>>,
        response_status: Option<i16>,
        failure: Option<String>,
        duration_ms: Option<i32>,
    }
}

impl TryFrom<DeliveryRow> for Delivery {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        let corrupt = |reason: String| StoreError::corrupt("deliveries", id, reason);
        let record = DeliveryRecord {
            attempt: row.attempt,
            due_at: row.due_at,
            delivered_at: row.delivered_at,
            last: row.last().map_err(corrupt)?,
        };
        Ok(Self {
            id,
            event: event(id, &row.event)?,
            created_at: row.created_at,
            state: DeliveryState::try_from(record).map_err(|invalid| corrupt(invalid.to_string()))?,
        })
    }
}

impl DeliveryRow {
    fn last(&self) -> Result<Option<Attempted>, String> {
        let outcome = match (self.response_status, self.failure.as_deref()) {
            (None, None) => return Ok(None),
            (Some(status), None) => {
                Outcome::Answered(u16::try_from(status).map_err(|_| format!("response_status {status}"))?)
            }
            (None, Some(failure)) => {
                Outcome::Failed(Failure::parse(failure).map_err(|_| format!("failure {failure:?}"))?)
            }
            (Some(_), Some(_)) => return Err("an answer and a failure".to_owned()),
        };
        let milliseconds = u64::try_from(self.duration_ms.unwrap_or_default())
            .map_err(|_| "a duration below 0".to_owned())?;
        Ok(Some(Attempted {
            outcome,
            duration: Duration::from_millis(milliseconds),
        }))
    }
}

fn event(id: DeliveryId, name: &str) -> Result<WebhookEvent, StoreError> {
    WebhookEvent::parse(name).ok_or_else(|| StoreError::corrupt("deliveries", id, format!("event {name:?}")))
}

/// The id from which deliveries about an order may begin.
fn queued_since(order: OrderId) -> Uuid {
    const TEN_MINUTES_MS: u128 = 600_000;
    Uuid::from_u128(order.uuid().as_u128().saturating_sub(TEN_MINUTES_MS << 80))
}

/// Reads subscriptions and histories. Each call is one statement, in the seller's share of the pool.
#[async_trait]
impl SubscriptionReader for Autocommit {
    async fn subscriptions(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Vec<Subscription>, StoreError> {
        let (statements, client) = (self.of_seller(seller), client_id.uuid());
        let rows = statements
            .rows(sql!(SubscriptionRow:
                concat!("select ", subscription_columns!(), " from subscriptions s where s.seller_id = "), seller.uuid(),
                " and s.client_id = ", client, " order by s.created_at, s.id"))
            .await?;
        rows.into_iter().map(Subscription::try_from).collect()
    }

    /// Finds the newest by id, since ids rise with time, and returns them in the order in which they were queued.
    async fn history(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        let (statements, client, id) = (self.of_seller(seller), client_id.uuid(), subscription.uuid());
        let rows = statements.rows(sql!(Option<DeliveryRow>:
            concat!("select ", delivery_columns!(), " from subscriptions s left join lateral (select * from deliveries d \
               where d.seller_id = s.seller_id and d.subscription_id = s.id order by d.id desc limit 100) d on true where s.seller_id = "),
            seller.uuid(), " and s.client_id = ", client, " and s.id = ", id, " order by d.created_at desc, d.id desc")).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let deliveries = rows.into_iter().flatten().map(Delivery::try_from);
        deliveries.collect::<Result<_, _>>().map(Some)
    }

    async fn subscription_of_seller(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<SellerSubscription>, StoreError> {
        let row = self
            .of_seller(seller)
            .row(sql!((SubscriptionRow, String, bool):
                concat!("select ", seller_subscriptions!(), " where s.seller_id = "), seller.uuid(),
                " and s.id = ", subscription.uuid(), ""))
            .await?;
        row.map(seller_subscription).transpose()
    }

    async fn subscriptions_of_seller(
        &self,
        seller: SellerId,
        after: Option<SubscriptionId>,
        limit: u16,
    ) -> Result<Vec<SellerSubscription>, StoreError> {
        let after = after.map_or(Uuid::nil(), SubscriptionId::uuid);
        let rows = self
            .of_seller(seller)
            .rows(sql!((SubscriptionRow, String, bool):
                concat!("select ", seller_subscriptions!(), " where s.seller_id = "), seller.uuid(),
                " and s.id > ", after, " order by s.id limit ", i64::from(limit), ""))
            .await?;
        rows.into_iter().map(seller_subscription).collect()
    }

    /// Finds the ids in an index, and reads those rows alone. An event or an order is looked for in the rows themselves: of each subscription
    /// of the seller, and for an order those since its id was made, ten minutes less for clocks that differ.
    async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<SellerDelivery>, StoreError> {
        let (statements, limit) = (self.of_seller(seller), i32::from(limit));
        let before = before.map_or(Uuid::max(), DeliveryId::uuid);
        let subscription = filter.subscription.map(SubscriptionId::uuid);
        macro_rules! page {
            ($condition:literal $(, $text:literal, $value:expr)*) => {
                sql!((Uuid, String, bool, String, bool, DeliveryRow):
                    concat!("select s.id, s.app_name, s.is_own, s.url, s.active, ", delivery_columns!(), " from (\
                       select s.*, a.name as app_name, a.owner_id = s.seller_id as is_own, d.id as delivery from subscriptions s \
                       join applications a on a.client_id = s.client_id and a.deleted_at is null cross join lateral (\
                       select d.id from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id", $condition,
                       " and d.id < "), before, $($text, $value,)* " order by d.id desc limit ", limit, ") d where s.seller_id = ", seller.uuid(),
                    " and s.id = coalesce(", subscription, ", s.id) order by d.id desc limit ", limit,
                    ") s cross join lateral (select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
                       and d.id = s.delivery limit 1) d order by d.id desc")
            };
        }
        let about = filter.order.map(|order| format!(r#""order_id":"{order}""#));
        let about = about.unwrap_or_default().into_bytes();
        macro_rules! searched {
            ($condition:literal) => {
                page!(
                    $condition,
                    " and d.event = coalesce(",
                    filter.event.map(WebhookEvent::as_str),
                    ", d.event) and d.id >= ",
                    filter.order.map_or(Uuid::nil(), queued_since),
                    " and position(",
                    about.as_slice(),
                    " in d.body) >",
                    0
                )
            };
        }
        let rows = match (filter.failed, filter.event.is_some() || filter.order.is_some()) {
            (true, false) => statements.rows(page!(" and d.attempt > 0 and d.delivered_at is null")),
            (false, false) => statements.rows(page!("")),
            (true, true) => statements.rows(searched!(" and d.attempt > 0 and d.delivered_at is null")),
            (false, true) => statements.rows(searched!("")),
        };
        let listed = rows
            .await?
            .into_iter()
            .map(|(id, app_name, is_own, text, active, delivery)| {
                let subscription = SubscriptionId::from(id);
                Ok(SellerDelivery {
                    subscription,
                    app_name,
                    receiver: url(subscription, &text)?.shown(is_own),
                    active,
                    delivery: delivery.try_into()?,
                })
            });
        listed.collect()
    }
}

/// Undelivered deliveries of all sellers. Each call is one statement.
#[async_trait]
impl DeliveryDirectory for Autocommit {
    async fn seller_of(&self, subscription: SubscriptionId) -> Result<Option<SellerId>, StoreError> {
        let find = sql!(Uuid: "select seller_id from subscriptions where id = ", subscription.uuid(), "");
        Ok(self.row(find).await?.map(SellerId::from))
    }

    async fn undelivered(
        &self,
        filter: UndeliveredFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<DeliveryWithSeller>, StoreError> {
        let (seller, subscription) = (
            filter.seller.map(SellerId::uuid),
            filter.subscription.map(SubscriptionId::uuid),
        );
        let (before, limit) = (before.map_or(Uuid::max(), DeliveryId::uuid), i32::from(limit));
        let rows = match filter.why {
            Undelivered::Pending => self.rows(sql!((Uuid, Uuid, String, String, DeliveryRow):
                "with recursive asked as materialized (select ", seller,
                concat!(" as seller), ", queues_with!("first", "due_at", "due_at is not null and attempt = 0"), ", ",
                  queues_with!("repeated", "due_at", "due_at is not null and attempt > 0"),
                  " select s.seller_id, s.id, a.name, s.url, ", delivery_columns!(), " from (\
                   select seller_id, subscription_id from first union select seller_id, subscription_id from repeated) q \
                   cross join lateral (select * from subscriptions s where s.seller_id = q.seller_id and s.id = q.subscription_id limit 1) s \
                   cross join lateral (select name from applications a where a.client_id = s.client_id limit 1) a cross join lateral (\
                   (select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
                     and d.due_at is not null and d.attempt = 0 and d.id < "), before, " order by d.id desc limit ", limit,
                ") union all (select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
                     and d.due_at is not null and d.attempt > 0 and d.id < ", before, " order by d.id desc limit ", limit,
                ")) d where s.active and s.seller_id = coalesce(", seller, ", s.seller_id) and s.id = coalesce(",
                subscription, ", s.id) order by d.id desc limit ", limit, "")).await?,
            Undelivered::Exhausted => self.rows(sql!((Uuid, Uuid, String, String, DeliveryRow):
                "with recursive asked as materialized (select ", seller,
                concat!(" as seller), ", queues_with!("failed", "id", "attempt > 0 and delivered_at is null"),
                  " select s.seller_id, s.id, a.name, s.url, ", delivery_columns!(), " from failed q \
                   cross join lateral (select * from subscriptions s where s.seller_id = q.seller_id and s.id = q.subscription_id limit 1) s \
                   cross join lateral (select name from applications a where a.client_id = s.client_id limit 1) a cross join lateral (\
                   select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
                   and d.attempt = 6 and d.delivered_at is null and d.id < "), before, " order by d.id desc limit ", limit,
                ") d where s.seller_id = coalesce(", seller, ", s.seller_id) and s.id = coalesce(", subscription,
                ", s.id) order by d.id desc limit ", limit, "")).await?,
        };
        let listed = rows
            .into_iter()
            .map(|(seller, subscription, app_name, url, delivery)| {
                Ok(DeliveryWithSeller {
                    seller: seller.into(),
                    subscription: subscription.into(),
                    app_name,
                    url,
                    delivery: delivery.try_into()?,
                })
            });
        listed.collect()
    }
}

#[async_trait]
impl SubscriptionStore for Tx {
    /// Increments the count unless it is at its limit. Locks the connection first, by the order of locks; the
    /// subscription will be bound to it.
    async fn take_subscription_place(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<bool, StoreError> {
        let (seller, client) = (seller.uuid(), client_id.uuid());
        let most = i32::try_from(MAX_SUBSCRIPTIONS).map_err(StoreError::unexpected)?;
        Ok(self.execute(sql!(():
            "with connection as materialized (select from connections where client_id = ", client, " and seller_id = ",
            seller, " for share) \
             insert into subscription_quota as q (seller_id, client_id, used) select ", seller, ", ", client,
            ", 1 from (select count(*) from connection) c \
             on conflict (seller_id, client_id) do update set used = q.used + 1 where q.used < ", most, "")).await? == 1)
    }

    /// Binds it to the open connection, if there is one. If another seller's application has none, it was disconnected
    /// after the request arrived: the result is the same as if the request had come just before.
    async fn add_subscription(&self, subscription: NewSubscription) -> Result<(), StoreError> {
        let NewSubscription { seller, id, .. } = subscription;
        let (seller, client, id) = (seller.uuid(), subscription.client_id.uuid(), id.uuid());
        let (binding, secret) = (
            secret_binding(seller, id),
            subscription.secret.reveal().as_bytes(),
        );
        let secret = self
            .context()
            .sealing
            .sealer()?
            .seal(SealPurpose::WebhookSecret, &binding, secret);
        let insert = sql!(():
            "with connection as materialized (select generation from connections where client_id = ", client,
            " and seller_id = ", seller, " and disconnected_at is null for share) \
             insert into subscriptions (seller_id, id, client_id, created_at, url, events, secret, connection_generation, active) \
             select n.*, c.generation, c.generation is not null or exists (select from applications a \
                 where a.client_id = n.client_id and a.owner_id = n.seller_id and a.deleted_at is null) \
             from (select ", seller, " as seller_id, ", id, ", ", client, " as client_id, ", subscription.created_at,
            ", ", subscription.url.as_str(), ", ", column(&subscription.events, |event| event.as_str()), ", ", secret,
            ") n left join connection c on true");
        expect_rows("subscriptions", self.execute(insert).await?, 1)
    }

    async fn remove_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError> {
        ending::remove_subscription(self, seller, client_id, subscription).await
    }

    async fn subscription(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<Subscription>, StoreError> {
        let (seller, id) = (seller.uuid(), subscription.uuid());
        let row = self
            .row(sql!(SubscriptionRow:
                concat!("select ", subscription_columns!(), " from subscriptions s where s.seller_id = "), seller,
                " and s.id = ", id, ""))
            .await?;
        row.map(Subscription::try_from).transpose()
    }

    async fn delivery_body(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<(WebhookEvent, Vec<u8>)>, StoreError> {
        let (seller, subscription, id) = (seller.uuid(), subscription.uuid(), delivery.uuid());
        let row = self.row(sql!((String, Vec<u8>):
            "select d.event, d.body from subscriptions s join deliveries d on d.seller_id = s.seller_id and d.subscription_id = s.id \
             where s.seller_id = ", seller, " and s.id = ", subscription, " and d.id = ", id, "")).await?;
        row.map(|(name, body)| Ok((event(delivery, &name)?, body)))
            .transpose()
    }

    /// If the queue is live, queues the delivery and wakes the queue, under the same locks as a fan-out.
    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: NewDelivery,
    ) -> Result<bool, StoreError> {
        let (seller, subscription, id) = (seller.uuid(), subscription.uuid(), delivery.id.uuid());
        let (at, event, body) = (delivery.created_at, delivery.event.as_str(), delivery.body);
        let is_queued = self.row(sql!(i64:
            "with queue as materialized (select s.seller_id, s.id, s.leased, s.wake_at from subscriptions s where s.seller_id = ",
            seller, " and s.id = ", subscription, concat!(" and ", queue_state!(), " = 'live' for key share of s), \
             queued as (insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
               select l.seller_id, l.id, "), id, ", ", at, ", ", at, ", ", event, ", ", body,
            " from queue l returning 1), \
             asleep as materialized (select s.seller_id, s.id, s.leased, s.wake_at from queue l \
               join subscriptions s on s.seller_id = l.seller_id and s.id = l.id \
               where not l.leased and (l.wake_at is null or l.wake_at > ", at, ") for no key update of s), \
             woken as (update subscriptions s set wake_at = (select api_now()) from asleep w where s.seller_id = w.seller_id and s.id = w.id and not w.leased \
               and (w.wake_at is null or w.wake_at > ", at, ")) select count(*) from queued")).await? == Some(1);
        if is_queued {
            self.wakes_queue();
        }
        Ok(is_queued)
    }
}
