//! Everybody's applications, as the operator looks them up.

use async_trait::async_trait;
use kernel::{SellerId, StoreError};

use crate::{Application, ApplicationStatus, ClientId};

/// Which applications are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplicationFilter {
    /// Only those that stand so.
    pub status: Option<ApplicationStatus>,
    /// Only those of this seller.
    pub owner: Option<SellerId>,
}

/// Looks up applications of any owner, outside a transaction. Deleted ones are nowhere in it.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ApplicationDirectory: Send + Sync {
    /// One application, whatever its status and its owner's; built-in ones too.
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application with this name, without regard to case; never a built-in one.
    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError>;

    /// Up to `limit` applications made before the one with the id `before`, newest first, built-in ones not among them.
    async fn applications(
        &self,
        filter: ApplicationFilter,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError>;
}
