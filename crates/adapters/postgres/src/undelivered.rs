//! What operators look up: deliveries that are due or were given up, and mails to buyers that were given up.

use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::{
    ExpressionMethods as _, NullableExpressionMethods as _, OptionalExtension as _, QueryDsl as _,
    QueryResult, Queryable, Selectable, SelectableHelper as _,
};
use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use kernel::{MailId, SellerId, StoreError};
use oauth::ClientId;
use orders::GivenUpMail;
use uuid::Uuid;
use webhooks::{DeliveryFilter, DeliveryId, SellerDelivery, SubscriptionId, Undelivered, UndeliveredFilter};

use crate::connection::{BEGIN_UNLIMITED, OpenConnection, error::store_error};
use crate::database::Database;
use crate::mails::count;
use crate::orders::order_number;
use crate::schema::{mails, subscriptions};
use crate::unit_of_work::PLAN_BY_VALUES;
use crate::webhooks::{DELIVERIES_OF_SELLER, SellerDeliveryRow, UNDELIVERED, deliveries_of};

#[derive(Queryable, Selectable)]
#[diesel(table_name = mails, check_for_backend(Pg))]
struct GivenUpRow {
    id: Uuid,
    order_id: Uuid,
    order_number: String,
    created_at: DateTime<Utc>,
    #[diesel(select_expression = mails::dead_at.assume_not_null())]
    dead_at: DateTime<Utc>,
    attempts: i32,
}

/// Lists of webhooks for operators, on one connection and without a time limit: what an event or an order caused is looked for in
/// all that is kept.
pub struct WebhookLists {
    open: OpenConnection,
}

impl Database {
    /// Opens the connection of the lists.
    pub async fn webhook_lists(&self) -> Result<WebhookLists, StoreError> {
        self.connector().require_usable()?;
        let open = self.connector().open().await?;
        let mut connection = open.connection();
        let begun = connection.batch_execute(BEGIN_UNLIMITED).await;
        begun.map_err(store_error)?;
        let planned = PLAN_BY_VALUES.bare().execute(&mut connection).await;
        planned.map_err(store_error)?;
        Ok(WebhookLists { open })
    }

    /// Up to `limit` mails to buyers that were given up, older than `before`, newest first.
    pub async fn given_up_mails(
        &self,
        before: Option<MailId>,
        limit: u16,
    ) -> Result<Vec<GivenUpMail>, StoreError> {
        let rows = mails::table
            .filter(mails::dead_at.is_not_null())
            .filter(mails::id.lt(before.map_or(Uuid::max(), MailId::uuid)))
            .order(mails::id.desc())
            .limit(i64::from(limit))
            .select(GivenUpRow::as_select());
        let mail = |row: GivenUpRow| {
            let corrupt = |reason: String| StoreError::corrupt("mails", row.id, reason);
            Ok(GivenUpMail {
                id: row.id.into(),
                order: row.order_id.into(),
                number: order_number(row.order_number).map_err(corrupt)?,
                created_at: row.created_at,
                given_up_at: row.dead_at,
                attempts: count(row.attempts).map_err(corrupt)?,
            })
        };
        let rows = self.autocommit("mails").rows(rows).await?;
        rows.into_iter().map(mail).collect()
    }
}

impl WebhookLists {
    /// The seller whose events the subscription receives; None if there is no such subscription. Ended ones
    /// are included.
    pub async fn seller_of(&self, subscription: SubscriptionId) -> Result<Option<SellerId>, StoreError> {
        let find = subscriptions::table
            .filter(subscriptions::id.eq(subscription.uuid()))
            .select(subscriptions::seller_id);
        let found = find.first::<Uuid>(&mut self.open.connection()).await;
        Ok(found.optional().map_err(store_error)?.map(SellerId::from))
    }

    /// The sellers that have subscriptions, ended ones included; with a client, those of this application.
    pub async fn subscribed_sellers(&self, client: Option<ClientId>) -> Result<Vec<SellerId>, StoreError> {
        let mut find = subscriptions::table
            .distinct_on(subscriptions::seller_id)
            .order(subscriptions::seller_id)
            .select(subscriptions::seller_id)
            .into_boxed();
        if let Some(client) = client {
            find = find.filter(subscriptions::client_id.eq(client.uuid()));
        }
        let found = find.load::<Uuid>(&mut self.open.connection()).await;
        Ok(found
            .map_err(store_error)?
            .into_iter()
            .map(SellerId::from)
            .collect())
    }

    /// As [`SubscriptionReader::deliveries_of_seller`](webhooks::SubscriptionReader::deliveries_of_seller).
    pub async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<SellerDelivery>, StoreError> {
        let statement = DELIVERIES_OF_SELLER.bind(deliveries_of(seller, filter, before, limit));
        let rows = statement.get_results(&mut self.open.connection()).await;
        deliveries(rows)
    }

    /// Up to `limit` undelivered deliveries of all sellers whose id is below `before`, newest first. Of those
    /// given up, `active` may be outdated until an end has been followed up.
    pub async fn undelivered(
        &self,
        filter: UndeliveredFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<SellerDelivery>, StoreError> {
        let UndeliveredFilter {
            why,
            seller,
            subscription,
        } = filter;
        let statement = UNDELIVERED.bind((
            seller.map(SellerId::uuid),
            subscription.map(SubscriptionId::uuid),
            before.map_or(Uuid::max(), DeliveryId::uuid),
            i64::from(limit),
            why == Undelivered::Pending,
        ));
        let rows = statement.get_results(&mut self.open.connection()).await;
        deliveries(rows)
    }
}

fn deliveries(rows: QueryResult<Vec<SellerDeliveryRow>>) -> Result<Vec<SellerDelivery>, StoreError> {
    let rows = rows.map_err(store_error)?;
    rows.into_iter().map(SellerDelivery::try_from).collect()
}
