//! Subscriptions as a transaction changes them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension,
    sql_types::{Array, Binary, Integer, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;
use webhooks::{
    DeliveryId, MOST_SUBSCRIPTIONS, NewDelivery, NewSubscription, Subscription, SubscriptionId,
    SubscriptionStore, WebhookEvent,
};

use super::{
    delivery_row, ending,
    queue::Queue,
    subscription_row::{self, Columns, SubscriptionRow, subscription_columns},
};
use crate::{pending::expect_rows, statement::statement, transaction::Tx};

/// Counts one more, unless the count is full. The connection comes first in the order of locks, and the subscription will be
/// bound to it.
struct TakePlace {
    seller: Uuid,
    client: Uuid,
    most: i32,
}

statement!(TakePlace => ():
    "with connection as materialized (select from connections where client_id = ", client: SqlUuid,
    " and seller_id = ", seller: SqlUuid,
    " for share) \
     insert into subscription_quota as q (seller_id, client_id, used) select ", seller: SqlUuid, ", ", client: SqlUuid,
    ", 1 from (select count(*) from connection) c \
     on conflict (seller_id, client_id) do update set used = q.used + 1 where q.used < ", most: Integer, "");

/// Bound to the open connection, where there is one. Another seller's application without one has been disconnected since its
/// request came in: the subscription is what it would be, had it come in just before.
struct Insert<'a> {
    seller: Uuid,
    client: Uuid,
    id: Uuid,
    at: DateTime<Utc>,
    url: &'a str,
    events: Vec<&'static str>,
    secret: Vec<u8>,
}

statement!(Insert<'_> => ():
    "with connection as materialized (select generation from connections where client_id = ", client: SqlUuid,
    " and seller_id = ", seller: SqlUuid,
    " and disconnected_at is null for share) \
     insert into subscriptions (seller_id, id, client_id, created_at, url, events, secret, connection_generation, active) \
     select n.*, c.generation, c.generation is not null or exists (select from applications a \
         where a.client_id = n.client_id and a.owner_id = n.seller_id and a.deleted_at is null) \
     from (select ", seller: SqlUuid, " as seller_id, ", id: SqlUuid, ", ", client: SqlUuid, " as client_id, ", at: Timestamptz,
    ", ", url: Text, ", ", events: Array<Text>, ", ", secret: Binary,
    ") n left join connection c on true");

struct One {
    seller: Uuid,
    id: Uuid,
}

statement!(One => Columns:
    concat!("select ", subscription_columns!(), " from subscriptions s where s.seller_id = "), seller: SqlUuid,
    " and s.id = ", id: SqlUuid, "");

struct Told {
    seller: Uuid,
    subscription: Uuid,
    id: Uuid,
}

statement!(Told => (Text, Binary):
    "select d.event, d.body from subscriptions s join deliveries d on d.seller_id = s.seller_id and d.subscription_id = s.id \
     where s.seller_id = ", seller: SqlUuid, " and s.id = ", subscription: SqlUuid, " and d.id = ", id: SqlUuid, "");

#[async_trait]
impl SubscriptionStore for Tx {
    async fn take_subscription_place(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<bool, StoreError> {
        let take = TakePlace {
            seller: seller.uuid(),
            client: client_id.uuid(),
            most: i32::try_from(MOST_SUBSCRIPTIONS).map_err(StoreError::unexpected)?,
        };
        Ok(self.run(take.execute(&mut self.connection())).await? == 1)
    }

    async fn add_subscription(&self, subscription: NewSubscription) -> Result<(), StoreError> {
        let NewSubscription { seller, id, .. } = subscription;
        let insert = Insert {
            seller: seller.uuid(),
            client: subscription.client_id.uuid(),
            id: id.uuid(),
            at: subscription.created_at,
            url: subscription.url.as_str(),
            events: subscription.events.iter().map(|event| event.as_str()).collect(),
            secret: subscription_row::seal(&self.tools().sealing, seller, id, &subscription.secret)?,
        };
        let added = self.run(insert.execute(&mut self.connection())).await?;
        expect_rows("subscriptions", added, 1)
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
        let one = One {
            seller: seller.uuid(),
            id: subscription.uuid(),
        };
        let row = self
            .run(async {
                one.get_result::<SubscriptionRow>(&mut self.connection())
                    .await
                    .optional()
            })
            .await?;
        row.map(Subscription::try_from).transpose()
    }

    async fn delivery_body(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<(WebhookEvent, Vec<u8>)>, StoreError> {
        let told = Told {
            seller: seller.uuid(),
            subscription: subscription.uuid(),
            id: delivery.uuid(),
        };
        let row = self
            .run(async {
                told.get_result::<(String, Vec<u8>)>(&mut self.connection())
                    .await
                    .optional()
            })
            .await?;
        row.map(|(event, body)| Ok((delivery_row::event(delivery, &event)?, body)))
            .transpose()
    }

    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: NewDelivery,
    ) -> Result<bool, StoreError> {
        let queue = Queue {
            seller: seller.uuid(),
            subscription: subscription.uuid(),
            id: delivery.id.uuid(),
            event: delivery.event.as_str(),
            body: delivery.body,
            at: delivery.created_at,
        };
        let is_queued = self.run(queue.get_result::<i64>(&mut self.connection())).await? == 1;
        if is_queued {
            self.wakes_lane();
        }
        Ok(is_queued)
    }
}
