//! Everybody's deliveries that have not arrived.

use async_trait::async_trait;
use diesel::{
    Queryable,
    sql_types::{Bool, Integer, Nullable, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use uuid::Uuid;
use webhooks::{
    DeliveryDirectory, DeliveryId, DeliveryOfAny, SubscriptionId, Undelivered, UndeliveredFilter,
};

use super::delivery_row::{self, DeliveryRow, delivery_columns};
use crate::{reads::Reads, statement::statement};

/// What is asked for, of whichever kind.
struct Asked {
    seller: Option<Uuid>,
    subscription: Option<Uuid>,
    before: Uuid,
    limit: i32,
}

struct Pending {
    asked: Asked,
}

statement!(Pending => (SqlUuid, SqlUuid, delivery_row::Columns):
    concat!("select s.seller_id, s.id, ", delivery_columns!(), " from subscriptions s cross join lateral (\
       select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
       and d.due_at is not null and d.id < "), asked.before: SqlUuid,
    " order by d.id desc limit ", asked.limit: Integer,
    ") d where s.active and s.seller_id = coalesce(", asked.seller: Nullable<SqlUuid>,
    ", s.seller_id) and s.id = coalesce(", asked.subscription: Nullable<SqlUuid>,
    ", s.id) order by d.id desc limit ", asked.limit: Integer, "");

struct Exhausted {
    asked: Asked,
}

statement!(Exhausted => (SqlUuid, SqlUuid, delivery_row::Columns):
    concat!("select s.seller_id, s.id, ", delivery_columns!(), " from subscriptions s cross join lateral (\
       select * from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
       and d.attempt = 6 and d.delivered_at is null and d.id < "), asked.before: SqlUuid,
    " order by d.id desc limit ", asked.limit: Integer,
    ") d where s.seller_id = coalesce(", asked.seller: Nullable<SqlUuid>,
    ", s.seller_id) and s.id = coalesce(", asked.subscription: Nullable<SqlUuid>,
    ", s.id) order by d.id desc limit ", asked.limit: Integer, "");

struct HasSubscription {
    seller: Option<Uuid>,
    subscription: Uuid,
}

statement!(HasSubscription => Bool:
    "select exists (select from subscriptions s where s.seller_id = coalesce(", seller: Nullable<SqlUuid>,
    ", s.seller_id) and s.id = ", subscription: SqlUuid, ")");

#[derive(Queryable)]
struct Row {
    seller: Uuid,
    subscription: Uuid,
    delivery: DeliveryRow,
}

/// Each call is one statement.
pub(crate) struct AllDeliveries(pub(crate) Reads);

#[async_trait]
impl DeliveryDirectory for AllDeliveries {
    async fn has_subscription(
        &self,
        seller: Option<SellerId>,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError> {
        let asked = HasSubscription {
            seller: seller.map(SellerId::uuid),
            subscription: subscription.uuid(),
        };
        self.0
            .ask(|lent| async move { asked.get_result::<bool>(&mut lent.connection()).await })
            .await
    }

    async fn undelivered(
        &self,
        filter: UndeliveredFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<DeliveryOfAny>, StoreError> {
        let asked = Asked {
            seller: filter.seller.map(SellerId::uuid),
            subscription: filter.subscription.map(SubscriptionId::uuid),
            before: before.map_or(Uuid::max(), DeliveryId::uuid),
            limit: limit.into(),
        };
        let rows = self
            .0
            .ask(|lent| async move {
                match filter.why {
                    Undelivered::Pending => {
                        let pending = Pending { asked };
                        pending.get_results::<Row>(&mut lent.connection()).await
                    }
                    Undelivered::Exhausted => {
                        let exhausted = Exhausted { asked };
                        exhausted.get_results::<Row>(&mut lent.connection()).await
                    }
                }
            })
            .await?;
        let told = rows.into_iter().map(|row| {
            Ok(DeliveryOfAny {
                seller: row.seller.into(),
                subscription: row.subscription.into(),
                delivery: row.delivery.try_into()?,
            })
        });
        told.collect()
    }
}
