//! Sealing of the secrets that sign deliveries.

use kernel::{SealPurpose, SellerId, StoreError};
use uuid::Uuid;
use webhooks::{SigningSecrets, SubscriptionId};

use crate::sealing::Sealing;

pub(super) fn seal_secrets(
    sealing: &Sealing,
    seller: SellerId,
    id: SubscriptionId,
    secrets: &SigningSecrets,
) -> Result<Vec<u8>, StoreError> {
    let binding = secret_binding(seller.uuid(), id.uuid());
    let plain = secrets.reveal();
    Ok(sealing
        .sealer()?
        .seal(SealPurpose::WebhookSecret, &binding, plain.as_bytes()))
}

pub(super) fn open_secrets(
    sealing: &Sealing,
    seller: SellerId,
    id: SubscriptionId,
    sealed: &[u8],
) -> Result<SigningSecrets, StoreError> {
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
    SigningSecrets::parse(&text).map_err(|invalid| corrupt(format!("a secret that {invalid}")))
}

/// Binds a secret to its row: moved into another row, it does not open.
pub(crate) fn secret_binding(seller: Uuid, subscription: Uuid) -> Vec<u8> {
    [seller.as_bytes().as_slice(), subscription.as_bytes()].concat()
}
