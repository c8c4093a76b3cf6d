//! Sealing of stored idempotent responses, of links in queued mails, and of the secrets that sign deliveries.

use std::sync::Arc;

use kernel::{Claim, SealPurpose, Sealer, SellerId, StoreError};
use uuid::Uuid;
use webhooks::{SigningSecrets, SubscriptionId};

/// The sealer, if the program has keys: commands that store nothing sealed run without keys.
#[derive(Clone, Default)]
pub(crate) struct Sealing(Option<Arc<dyn Sealer>>);

impl Sealing {
    pub(crate) fn with(sealer: Arc<dyn Sealer>) -> Self {
        Self(Some(sealer))
    }

    /// Seals a claim's response body.
    pub(crate) fn seal(&self, claim: &Claim, body: &[u8]) -> Result<Vec<u8>, StoreError> {
        let binding = binding(claim, claim.fence);
        Ok(self.sealer()?.seal(SealPurpose::RememberedBody, &binding, body))
    }

    /// Opens the response body stored under the fence of an earlier claim of the same request.
    pub(crate) fn open(&self, claim: &Claim, fence: Uuid, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let binding = binding(claim, fence);
        let opened = self.sealer()?.open(SealPurpose::RememberedBody, &binding, sealed);
        opened.map_err(|cause| {
            let key = format!("{}, {}", claim.space.uuid(), claim.key.as_str());
            StoreError::corrupt("idempotency", key, cause)
        })
    }

    /// Seals the link of a mail.
    pub(crate) fn seal_link(&self, mail: Uuid, url: &str) -> Result<Vec<u8>, StoreError> {
        let sealer = self.sealer()?;
        Ok(sealer.seal(SealPurpose::MailedLink, mail.as_bytes(), url.as_bytes()))
    }

    /// Opens the link of a mail.
    pub(crate) fn open_link(&self, mail: Uuid, sealed: &[u8]) -> Result<String, StoreError> {
        let opened = self
            .sealer()?
            .open(SealPurpose::MailedLink, mail.as_bytes(), sealed);
        let url = opened.map_err(|cause| StoreError::corrupt("account_mails", mail, cause))?;
        String::from_utf8(url).map_err(|cause| StoreError::corrupt("account_mails", mail, cause))
    }

    /// Seals the secrets of a subscription.
    pub(crate) fn seal_secrets(
        &self,
        seller: SellerId,
        id: SubscriptionId,
        secrets: &SigningSecrets,
    ) -> Result<Vec<u8>, StoreError> {
        let (binding, plain) = (secret_binding(seller.uuid(), id.uuid()), secrets.reveal());
        let sealed = self
            .sealer()?
            .seal(SealPurpose::WebhookSecret, &binding, plain.as_bytes());
        Ok(sealed)
    }

    /// Opens the secrets of a subscription.
    pub(crate) fn open_secrets(
        &self,
        seller: SellerId,
        id: SubscriptionId,
        sealed: &[u8],
    ) -> Result<SigningSecrets, StoreError> {
        let corrupt = |reason: String| StoreError::corrupt("subscriptions", id, reason);
        let binding = secret_binding(seller.uuid(), id.uuid());
        let opened = self.sealer()?.open(SealPurpose::WebhookSecret, &binding, sealed);
        let opened = opened.map_err(|cause| corrupt(cause.to_string()))?;
        let text = String::from_utf8(opened).map_err(|_| corrupt("a secret that is no text".to_owned()))?;
        SigningSecrets::parse(&text).map_err(|invalid| corrupt(format!("a secret that {invalid}")))
    }

    /// The sealer; an error if the program was started without keys.
    pub(crate) fn sealer(&self) -> Result<&Arc<dyn Sealer>, StoreError> {
        let missing = || StoreError::unexpected("no sealing keys are configured");
        self.0.as_ref().ok_or_else(missing)
    }
}

/// Binds a body to its row, each part prefixed with its length: moved into another row, it does not open.
fn binding(claim: &Claim, fence: Uuid) -> Vec<u8> {
    let (space, key) = (claim.space.uuid(), claim.key.as_str().as_bytes());
    let parts = [
        space.as_bytes().as_slice(),
        key,
        claim.fingerprint.bytes(),
        fence.as_bytes(),
    ];
    let mut binding = Vec::with_capacity(128);
    for part in parts {
        binding.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        binding.extend(part);
    }
    binding
}

/// Binds a secret to its row: moved into another row, it does not open.
pub(crate) fn secret_binding(seller: Uuid, subscription: Uuid) -> Vec<u8> {
    [seller.as_bytes().as_slice(), subscription.as_bytes()].concat()
}
