//! Stands in for what keeps subscriptions and looks at hosts, until both are there.

use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use webhooks::{
    Delivery, DeliveryFilter, DeliveryOfSeller, HostCheck, HostRefused, Subscription, SubscriptionId,
    SubscriptionOfSeller, SubscriptionReader, WebhookUrl,
};

/// Knows no subscription, and refuses every host.
pub(crate) struct NoWebhooks;

#[async_trait]
impl HostCheck for NoWebhooks {
    async fn check(&self, _: &WebhookUrl) -> Result<(), HostRefused> {
        Err(HostRefused)
    }
}

#[async_trait]
impl SubscriptionReader for NoWebhooks {
    async fn subscriptions(&self, _: SellerId, _: ClientId) -> Result<Vec<Subscription>, StoreError> {
        Ok(Vec::new())
    }

    async fn history(
        &self,
        _: SellerId,
        _: ClientId,
        _: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        Ok(None)
    }

    async fn subscriptions_of_seller(&self, _: SellerId) -> Result<Vec<SubscriptionOfSeller>, StoreError> {
        Ok(Vec::new())
    }

    async fn deliveries_of_seller(
        &self,
        _: SellerId,
        _: DeliveryFilter,
        _: u16,
    ) -> Result<Vec<DeliveryOfSeller>, StoreError> {
        Ok(Vec::new())
    }
}
