//! Subscriptions as a transaction changes them.

use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use webhooks::{
    DeliveryId, NewDelivery, NewSubscription, Subscription, SubscriptionId, SubscriptionStore, WebhookEvent,
};

use crate::transaction::Tx;

fn unready<T>() -> Result<T, StoreError> {
    Err(StoreError::unexpected("not there yet"))
}

#[async_trait]
impl SubscriptionStore for Tx {
    async fn take_subscription_place(&self, _: SellerId, _: ClientId) -> Result<bool, StoreError> {
        unready()
    }

    async fn add_subscription(&self, _: NewSubscription) -> Result<(), StoreError> {
        unready()
    }

    async fn remove_subscription(
        &self,
        _: SellerId,
        _: ClientId,
        _: SubscriptionId,
    ) -> Result<bool, StoreError> {
        unready()
    }

    async fn subscription(&self, _: SellerId, _: SubscriptionId) -> Result<Option<Subscription>, StoreError> {
        unready()
    }

    async fn delivery_body(
        &self,
        _: SellerId,
        _: SubscriptionId,
        _: DeliveryId,
    ) -> Result<Option<(WebhookEvent, Vec<u8>)>, StoreError> {
        unready()
    }

    async fn queue_delivery(
        &self,
        _: SellerId,
        _: SubscriptionId,
        _: NewDelivery,
    ) -> Result<bool, StoreError> {
        unready()
    }
}
