//! Connections: which applications of others, or of their own by consent, sellers have let in.

use chrono::{DateTime, Utc};
use kernel::SellerId;

use crate::{ClientId, ScopeSet};

/// The number of a connection between a seller and an application. Disconnecting raises it: whatever was issued under an
/// earlier one is dead, also what was in the making.
pub type Generation = i32;

/// An application that a seller has let in, as the seller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedApplication {
    /// The application.
    pub client_id: ClientId,
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub owner: SellerId,
    /// The name of who runs it.
    pub owner_name: String,
    /// Its documentation.
    pub documentation_url: Option<String>,
    /// All that living consents allow, taken together with what the application holds today.
    pub scopes: ScopeSet,
    /// Since when.
    pub connected_at: DateTime<Utc>,
    /// When it last called the API for this seller; to about ten seconds.
    pub used_at: Option<DateTime<Utc>>,
}
