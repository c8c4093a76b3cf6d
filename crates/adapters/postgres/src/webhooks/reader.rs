//! Reading subscriptions and histories, outside a transaction.

use async_trait::async_trait;
use diesel::{
    Queryable,
    sql_types::{Integer, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;
use webhooks::{
    Delivery, DeliveryFilter, DeliveryOfSeller, Subscription, SubscriptionId, SubscriptionOfSeller,
    SubscriptionReader,
};

use super::{
    delivery_row::{self, DeliveryRow, delivery_columns},
    subscription_row::{self, SubscriptionRow, subscription_columns},
};
use crate::{reads::Reads, statement::statement};

struct OfApplication {
    seller: Uuid,
    client: Uuid,
}

statement!(OfApplication => subscription_row::Columns:
    concat!("select ", subscription_columns!(), " from subscriptions s where s.seller_id = "), seller: SqlUuid,
    " and s.client_id = ", client: SqlUuid, " order by s.created_at, s.id");

/// The newest are found by their ids, which rise with time, and told in the order in which they were queued.
struct History {
    seller: Uuid,
    client: Uuid,
    id: Uuid,
}

statement!(History => Nullable<delivery_row::Columns>:
    concat!("select ", delivery_columns!(), " from subscriptions s left join lateral (select * from deliveries d \
       where d.seller_id = s.seller_id and d.subscription_id = s.id order by d.id desc limit 100) d on true where s.seller_id = "),
    seller: SqlUuid, " and s.client_id = ", client: SqlUuid, " and s.id = ", id: SqlUuid,
    " order by d.created_at desc, d.id desc");

struct OfSeller {
    seller: Uuid,
}

statement!(OfSeller => (subscription_row::Columns, Text):
    concat!("select ", subscription_columns!(), ", a.name from subscriptions s \
       join applications a on a.client_id = s.client_id where s.seller_id = "), seller: SqlUuid,
    " order by s.created_at, s.id");

struct Latest {
    seller: Uuid,
    subscription: Option<Uuid>,
    limit: i32,
}

statement!(Latest => (SqlUuid, delivery_row::Columns):
    concat!("select s.id, ", delivery_columns!(), " from subscriptions s cross join lateral (select * from deliveries d \
       where d.seller_id = s.seller_id and d.subscription_id = s.id order by d.id desc limit "), limit: Integer,
    ") d where s.seller_id = ", seller: SqlUuid, " and s.id = coalesce(", subscription: Nullable<SqlUuid>,
    ", s.id) order by d.created_at desc, d.id desc limit ", limit: Integer, "");

struct LatestFailed {
    latest: Latest,
}

statement!(LatestFailed => (SqlUuid, delivery_row::Columns):
    concat!("select s.id, ", delivery_columns!(), " from subscriptions s cross join lateral (select * from deliveries d \
       where d.seller_id = s.seller_id and d.subscription_id = s.id and d.attempt > 0 and d.delivered_at is null \
       order by d.id desc limit "), latest.limit: Integer,
    ") d where s.seller_id = ", latest.seller: SqlUuid, " and s.id = coalesce(", latest.subscription: Nullable<SqlUuid>,
    ", s.id) order by d.created_at desc, d.id desc limit ", latest.limit: Integer, "");

#[derive(Queryable)]
struct LatestRow {
    subscription: Uuid,
    delivery: DeliveryRow,
}

/// Each call is one statement.
pub(crate) struct StoredSubscriptions(pub(crate) Reads);

#[async_trait]
impl SubscriptionReader for StoredSubscriptions {
    async fn subscriptions(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Vec<Subscription>, StoreError> {
        let (seller, client) = (seller.uuid(), client_id.uuid());
        let statement = OfApplication { seller, client };
        let rows = self
            .0
            .ask(|lent| async move {
                statement
                    .get_results::<SubscriptionRow>(&mut lent.connection())
                    .await
            })
            .await?;
        rows.into_iter().map(Subscription::try_from).collect()
    }

    async fn history(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        let statement = History {
            seller: seller.uuid(),
            client: client_id.uuid(),
            id: subscription.uuid(),
        };
        let rows = self
            .0
            .ask(|lent| async move {
                statement
                    .get_results::<Option<DeliveryRow>>(&mut lent.connection())
                    .await
            })
            .await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let deliveries = rows.into_iter().flatten().map(Delivery::try_from);
        deliveries.collect::<Result<_, _>>().map(Some)
    }

    async fn subscriptions_of_seller(
        &self,
        seller: SellerId,
    ) -> Result<Vec<SubscriptionOfSeller>, StoreError> {
        let statement = OfSeller {
            seller: seller.uuid(),
        };
        let rows = self
            .0
            .ask(|lent| async move {
                statement
                    .get_results::<(SubscriptionRow, String)>(&mut lent.connection())
                    .await
            })
            .await?;
        let told = rows.into_iter().map(|(row, app_name)| {
            Ok(SubscriptionOfSeller {
                subscription: row.try_into()?,
                app_name,
            })
        });
        told.collect()
    }

    async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        limit: u16,
    ) -> Result<Vec<DeliveryOfSeller>, StoreError> {
        let latest = Latest {
            seller: seller.uuid(),
            subscription: filter.subscription.map(SubscriptionId::uuid),
            limit: limit.into(),
        };
        let rows = self
            .0
            .ask(|lent| async move {
                if filter.failed {
                    let failed = LatestFailed { latest };
                    failed.get_results::<LatestRow>(&mut lent.connection()).await
                } else {
                    latest.get_results::<LatestRow>(&mut lent.connection()).await
                }
            })
            .await?;
        let told = rows.into_iter().map(|row| {
            Ok(DeliveryOfSeller {
                subscription: row.subscription.into(),
                delivery: row.delivery.try_into()?,
            })
        });
        told.collect()
    }
}
