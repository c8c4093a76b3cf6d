//! Subscriptions, their delivery queues, and the history of their deliveries. This file reads and changes
//! subscriptions.

mod claiming;
mod ending;
mod queues;
mod recording;
mod search;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{Reader, SellerId, StoreError};
use oauth::ClientId;
use orders::OrderId;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AttemptFailure, Attempted, Delivery, DeliveryFilter, DeliveryId, DeliveryState,
    LockedDelivery, MAX_SUBSCRIPTIONS, NewSubscription, Outcome, QueueKey, SellerDelivery,
    SellerSubscription, SigningSecrets, Subscription, SubscriptionChange, SubscriptionId, SubscriptionReader,
    SubscriptionStore, WebhookEvent, WebhookUrl,
};

use crate::connection::pool::Autocommit;
use crate::schema::{deliveries, subscriptions};
use crate::sealing::Sealing;
use crate::slow_reads::SlowReads;
use crate::sql::column;
use crate::statement::statements;
use crate::unit_of_work::{Tx, expect_rows};

pub(crate) use self::{
    ending::{delete_subscriptions, end_subscriptions, wake_queues},
    queues::{RecentlyAsleep, StoredQueues},
};

statements! {
    "webhooks.sql";
    SUBSCRIPTIONS_OF_APPLICATION: (SqlUuid, SqlUuid) -> SubscriptionRow;
    SUBSCRIPTIONS_OF_SELLER: (SqlUuid, SqlUuid, SqlUuid, BigInt) -> SellerSubscriptionRow;
    DELIVERIES: (SqlUuid, Nullable<SqlUuid>, SqlUuid, SqlUuid, SqlUuid) -> Option<FoundDeliveryRow>;
    pub(crate) DELIVERIES_OF_SELLER: (
        SqlUuid, Nullable<SqlUuid>, SqlUuid, BigInt, Bool, Nullable<Text>, Nullable<SqlUuid>, Nullable<Binary>
    ) -> SellerDeliveryRow;
    pub(crate) UNDELIVERED: (Nullable<SqlUuid>, Nullable<SqlUuid>, SqlUuid, BigInt, Bool) -> SellerDeliveryRow;
    ADD_SUBSCRIPTION: (SqlUuid, SqlUuid, SqlUuid, Timestamptz, Text, Array<Text>, Binary, Integer);
    CHANGE_SUBSCRIPTION: (
        SqlUuid, SqlUuid, SqlUuid, Nullable<Text>, Nullable<Array<Text>>
    ) -> SubscriptionRow;
    LOCK_SECRETS: (SqlUuid, SqlUuid, SqlUuid) -> SecretsRow;
    REMOVE_SUBSCRIPTION: (SqlUuid, SqlUuid, SqlUuid) -> Queue;
    QUEUE_DELIVERY: (SqlUuid, SqlUuid, SqlUuid, Timestamptz, Text, Binary);
    REQUEUE_DELIVERY: (SqlUuid, SqlUuid, SqlUuid, Timestamptz, Bool);
}

#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
struct SubscriptionRow {
    id: Uuid,
    client_id: Uuid,
    url: String,
    events: Vec<String>,
    active: bool,
    created_at: DateTime<Utc>,
}

/// The application of a subscription.
#[derive(QueryableByName)]
struct ApplicationRow {
    #[diesel(sql_type = Text)]
    app_name: String,
    /// It is the seller's own.
    #[diesel(sql_type = Bool)]
    is_own: bool,
}

#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
struct SellerSubscriptionRow {
    #[diesel(embed)]
    subscription: SubscriptionRow,
    #[diesel(embed)]
    application: ApplicationRow,
    secret: Vec<u8>,
    #[diesel(sql_type = Bool)]
    is_suspended: bool,
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

#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
struct SecretsRow {
    secret: Vec<u8>,
    active: bool,
}

/// A subscription of this seller.
fn seller_subscription(
    sealing: &Sealing,
    seller: SellerId,
    row: SellerSubscriptionRow,
) -> Result<SellerSubscription, StoreError> {
    let subscription = Subscription::try_from(row.subscription)?;
    Ok(SellerSubscription {
        receiver: subscription.url.shown(row.application.is_own),
        app_name: row.application.app_name,
        // Without the secret's key, everything else can be read.
        new_secret_from: sealing
            .open_secrets(seller, subscription.id, &row.secret)
            .ok()
            .and_then(|secrets| secrets.next_from()),
        is_suspended: row.is_suspended,
        subscription,
    })
}

#[derive(QueryableByName)]
#[diesel(table_name = deliveries)]
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
    lost_after: Option<i16>,
    body: Vec<u8>,
}

#[derive(QueryableByName)]
struct FoundDeliveryRow {
    #[diesel(embed)]
    delivery: DeliveryRow,
    #[diesel(sql_type = Bool)]
    is_live: bool,
    #[diesel(sql_type = Bool)]
    is_under_way: bool,
}

#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
pub(crate) struct SellerDeliveryRow {
    seller_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    subscription_id: Uuid,
    #[diesel(embed)]
    application: ApplicationRow,
    url: String,
    active: bool,
    #[diesel(sql_type = Bool)]
    is_suspended: bool,
    #[diesel(embed)]
    delivery: DeliveryRow,
}

impl TryFrom<SellerDeliveryRow> for SellerDelivery {
    type Error = StoreError;

    fn try_from(row: SellerDeliveryRow) -> Result<Self, StoreError> {
        let subscription = SubscriptionId::from(row.subscription_id);
        // A whole URL is not parsed: an invalid one would hide an operator's other rows.
        let receiver = if row.application.is_own {
            row.url
        } else {
            url(subscription, &row.url)?.shown(false)
        };
        Ok(Self {
            seller: row.seller_id.into(),
            subscription,
            app_name: row.application.app_name,
            receiver,
            active: row.active,
            is_suspended: row.is_suspended,
            delivery: row.delivery.try_into()?,
        })
    }
}

/// A subscription's key.
#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = subscriptions, check_for_backend(diesel::pg::Pg))]
pub(crate) struct Queue {
    pub(crate) seller_id: Uuid,
    id: Uuid,
}

impl Queue {
    fn key(&self) -> QueueKey {
        claiming::key(self.seller_id, self.id)
    }
}

impl TryFrom<DeliveryRow> for Delivery {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        let corrupt = |reason: String| StoreError::corrupt("deliveries", id, reason);
        let last = row.last().map_err(corrupt)?;
        let state = DeliveryState::stored(row.attempt, row.due_at, row.delivered_at, last);
        Ok(Self {
            id,
            event: event(id, &row.event)?,
            created_at: row.created_at,
            body: row.body,
            state: state.map_err(|invalid| corrupt(invalid.to_string()))?,
            is_lost: row.lost_after == Some(row.attempt),
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
                Outcome::Failed(AttemptFailure::parse(failure).map_err(|_| format!("failure {failure:?}"))?)
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

/// What [`DELIVERIES_OF_SELLER`] is bound to. An event or an order is looked for in the rows of each subscription of the seller; for
/// an order, in those since its id was made, ten minutes less for clocks that differ.
pub(crate) fn deliveries_of(
    seller: SellerId,
    filter: DeliveryFilter,
    before: Option<DeliveryId>,
    limit: u16,
) -> DeliveriesOfSeller {
    let DeliveryFilter {
        subscription,
        failed,
        event,
        order,
    } = filter;
    let about = order.map(|order| format!(r#""order_id":"{order}""#));
    (
        seller.uuid(),
        subscription.map(SubscriptionId::uuid),
        before.map_or(Uuid::max(), DeliveryId::uuid),
        i64::from(limit),
        failed,
        event.map(WebhookEvent::as_str),
        order.map(queued_since),
        about.map(String::into_bytes),
    )
}

type DeliveriesOfSeller = (
    Uuid,
    Option<Uuid>,
    Uuid,
    i64,
    bool,
    Option<&'static str>,
    Option<Uuid>,
    Option<Vec<u8>>,
);

/// Reads subscriptions and their deliveries. Each call is one statement in the seller's share: of the pool, or
/// of slow reads.
pub(crate) struct StoredSubscriptions {
    pub(crate) statements: Autocommit,
    pub(crate) slow: Arc<SlowReads>,
    pub(crate) sealing: Sealing,
}

#[async_trait]
impl SubscriptionReader for StoredSubscriptions {
    async fn subscriptions(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Vec<Subscription>, StoreError> {
        let statement = SUBSCRIPTIONS_OF_APPLICATION.bind((seller.uuid(), client_id.uuid()));
        let rows = self.statements.of_seller(seller).rows(statement).await?;
        rows.into_iter().map(Subscription::try_from).collect()
    }

    async fn history(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        let statement = DELIVERIES.bind((
            seller.uuid(),
            Some(client_id.uuid()),
            subscription.uuid(),
            Uuid::nil(),
            Uuid::max(),
        ));
        let rows = self.statements.of_seller(seller).rows(statement).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let deliveries = rows.into_iter().flatten();
        let deliveries = deliveries.map(|row| Delivery::try_from(row.delivery));
        deliveries.collect::<Result<_, _>>().map(Some)
    }

    async fn delivery(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        let only = delivery.uuid();
        let find = DELIVERIES.bind((
            seller.uuid(),
            Some(client_id.uuid()),
            subscription.uuid(),
            only,
            only,
        ));
        let row = self.statements.of_seller(seller).row(find).await?.flatten();
        row.map(|row| row.delivery.try_into()).transpose()
    }

    async fn subscription_of_seller(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<SellerSubscription>, StoreError> {
        let only = subscription.uuid();
        let statement = SUBSCRIPTIONS_OF_SELLER.bind((seller.uuid(), only, only, 1_i64));
        let row = self.statements.of_seller(seller).row(statement).await?;
        row.map(|row| seller_subscription(&self.sealing, seller, row))
            .transpose()
    }

    async fn subscriptions_of_seller(
        &self,
        seller: SellerId,
        after: Option<SubscriptionId>,
        limit: u16,
    ) -> Result<Vec<SellerSubscription>, StoreError> {
        let first = after.map_or(0, |after| after.uuid().as_u128().saturating_add(1));
        let (first, last) = (Uuid::from_u128(first), Uuid::max());
        let statement = SUBSCRIPTIONS_OF_SELLER.bind((seller.uuid(), first, last, i64::from(limit)));
        let rows = self.statements.of_seller(seller).rows(statement).await?;
        rows.into_iter()
            .map(|row| seller_subscription(&self.sealing, seller, row))
            .collect()
    }

    async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<SellerDelivery>, StoreError> {
        let statement = DELIVERIES_OF_SELLER.bind(deliveries_of(seller, filter, before, limit));
        let rows = self.slow.rows(Reader::in_panel(seller), statement).await?;
        rows.into_iter().map(SellerDelivery::try_from).collect()
    }
}

#[async_trait]
impl SubscriptionStore for Tx {
    async fn add_subscription(&self, subscription: NewSubscription) -> Result<bool, StoreError> {
        let NewSubscription { seller, id, .. } = subscription;
        let most = i32::try_from(MAX_SUBSCRIPTIONS).map_err(StoreError::unexpected)?;
        let secrets = subscription.secret.into();
        let secret = self.units.sealing.seal_secrets(seller, id, &secrets)?;
        let add = ADD_SUBSCRIPTION.bind((
            seller.uuid(),
            id.uuid(),
            subscription.client_id.uuid(),
            subscription.created_at,
            subscription.url.as_str(),
            column(&subscription.events, |event| event.as_str()),
            secret,
            most,
        ));
        Ok(self.execute(add).await? == 1)
    }

    async fn lock_secrets(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<(SigningSecrets, bool)>, StoreError> {
        let lock = LOCK_SECRETS.bind((seller.uuid(), client_id.uuid(), subscription.uuid()));
        let Some(row) = self.row(lock).await? else {
            return Ok(None);
        };
        let sealing = &self.units.sealing;
        let secrets = sealing.open_secrets(seller, subscription, &row.secret)?;
        Ok(Some((secrets, row.active)))
    }

    async fn replace_secrets(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        secrets: &SigningSecrets,
    ) -> Result<(), StoreError> {
        let secret = self.units.sealing.seal_secrets(seller, subscription, secrets)?;
        let replace = diesel::update(subscriptions::table)
            .filter(subscriptions::seller_id.eq(seller.uuid()))
            .filter(subscriptions::id.eq(subscription.uuid()))
            .set(subscriptions::secret.eq(secret));
        expect_rows("subscriptions", self.execute(replace).await?, 1)
    }

    async fn change_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
        change: SubscriptionChange,
    ) -> Result<Option<Subscription>, StoreError> {
        let events = change
            .events
            .map(|events| column(&events, |event| event.as_str()));
        let change = CHANGE_SUBSCRIPTION.bind((
            seller.uuid(),
            client_id.uuid(),
            subscription.uuid(),
            change.url.as_ref().map(WebhookUrl::as_str),
            events,
        ));
        let row = self.row(change).await?;
        row.map(Subscription::try_from).transpose()
    }

    async fn remove_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError> {
        let remove = REMOVE_SUBSCRIPTION.bind((seller.uuid(), subscription.uuid(), client_id.uuid()));
        let Some(removed) = self.row(remove).await? else {
            return Ok(false);
        };
        ending::delete_deliveries(self, &[removed]).await?;
        Ok(true)
    }

    async fn subscription(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<Subscription>, StoreError> {
        let only = subscription.uuid();
        let find = SUBSCRIPTIONS_OF_SELLER.bind((seller.uuid(), only, only, 1_i64));
        let row = self.row(find).await?;
        row.map(|row| row.subscription.try_into()).transpose()
    }

    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        let queue = QUEUE_DELIVERY.bind((
            seller.uuid(),
            subscription.uuid(),
            delivery.id.uuid(),
            delivery.created_at,
            delivery.event.as_str(),
            delivery.body.as_slice(),
        ));
        let is_queued = self.execute(queue).await? == 1;
        self.wakes_queue(is_queued);
        Ok(is_queued)
    }

    async fn lock_delivery(
        &self,
        seller: SellerId,
        client_id: Option<ClientId>,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<LockedDelivery>, StoreError> {
        let lock = subscriptions::table
            .filter(subscriptions::seller_id.eq(seller.uuid()))
            .filter(subscriptions::id.eq(subscription.uuid()))
            .select(Queue::as_select())
            .for_no_key_update();
        if self.row(lock).await?.is_none() {
            return Ok(None);
        }
        // A statement of its own: it sees what was committed before the lock.
        let only = delivery.uuid();
        let find = DELIVERIES.bind((
            seller.uuid(),
            client_id.map(ClientId::uuid),
            subscription.uuid(),
            only,
            only,
        ));
        let row = self.row(find).await?.flatten();
        let locked = row.map(|row| {
            Ok(LockedDelivery {
                delivery: row.delivery.try_into()?,
                is_live: row.is_live,
                is_under_way: row.is_under_way,
            })
        });
        locked.transpose()
    }

    async fn requeue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
        has_ended: bool,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let delivery = delivery.uuid();
        let requeue = REQUEUE_DELIVERY.bind((seller.uuid(), subscription.uuid(), delivery, now, has_ended));
        let is_queued = self.execute(requeue).await? == 1;
        self.wakes_queue(is_queued);
        Ok(is_queued)
    }
}
