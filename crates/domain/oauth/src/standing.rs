//! Whether a family of tokens still stands: everything that its tokens' validity hangs on, looked at afresh each time.
//! Nothing is revoked by a sweep over tokens; a family that has ended ends them all.

use kernel::SellerId;

use crate::{ApplicationStatus, ClientId, FamilyId, ScopeSet};

/// A family that a seller consented to, as it stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Its id.
    pub id: FamilyId,
    /// The seller who consented.
    pub seller: SellerId,
    /// The application that it was granted to.
    pub client_id: ClientId,
    /// What the seller consented to.
    pub scopes: ScopeSet,
    /// What it hangs on.
    pub standing: Standing,
}

/// What a family hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// It was revoked: by its client, or since a code or a refresh token was used twice.
    pub revoked: bool,
    /// The seller has disconnected the application since.
    pub disconnected: bool,
    /// The seller's account is closed.
    pub closed: bool,
    /// The application as it is now; none once it was deleted.
    pub application: Option<(ApplicationStatus, ScopeSet)>,
}

impl Standing {
    /// The scopes that the application may have today, where tokens may still be issued; nothing where they may not.
    pub fn issuable(&self) -> Option<ScopeSet> {
        let (status, scopes) = self.application?;
        let ended = self.revoked || self.disconnected || self.closed;
        (!ended && status != ApplicationStatus::Suspended).then_some(scopes)
    }
}
