//! Token families, and the grants that create them.

use chrono::TimeDelta;
use kernel::SellerId;

use crate::{Application, ApplicationStatus, ClientId, FamilyId, GrantRefusal, ScopeSet, SecretHash};

kernel::words! {
    /// The origin of a family.
    pub enum FamilyKind {
        /// The application requested a token for its owner's account.
        ClientCredentials = "client_credentials",
        /// The seller consented.
        AuthorizationCode = "authorization_code",
        /// The seller created a personal token.
        Personal = "personal",
    }
}

/// A selection of families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamiliesOf {
    /// Those of an application, for all sellers.
    Application(ClientId),
    /// Those of a seller, for all applications; includes personal tokens.
    Seller(SellerId),
}

impl std::fmt::Display for FamiliesOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Application(client_id) => write!(f, "{client_id}"),
            Self::Seller(id) => write!(f, "{id}"),
        }
    }
}

/// A grant: a token with these scopes for this account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    pub seller: SellerId,
    pub client_id: ClientId,
    pub scopes: ScopeSet,
}

/// A family of the `client_credentials` flow with its only token, stored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewClientToken {
    pub family: FamilyId,
    pub grant: Grant,
    pub hash: SecretHash,
    /// Its lifetime, from the time of storage on.
    pub lifetime: TimeDelta,
}

/// A requested scope that cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeRefused {
    #[error("{0}: separate scopes by spaces")]
    Unknown(#[from] crate::UnknownScope),
    /// The list contains only spaces.
    #[error("`scope` is empty: omit it to get all of the application's scopes")]
    Empty,
    #[error("the application does not have the scope `{0}`")]
    NotHeld(crate::Scope),
}

/// The grant of the `client_credentials` flow: the owner's account with the requested scopes, or with all of
/// the application's if none is requested.
pub fn client_credentials(application: &Application, requested: Option<&str>) -> Result<Grant, ScopeRefused> {
    let scopes = match requested.filter(|list| !list.is_empty()) {
        None => application.scopes,
        Some(list) => ScopeSet::parse(list)?,
    };
    if scopes.is_empty() {
        return Err(ScopeRefused::Empty);
    }
    if let Some(missing) = scopes.iter().find(|scope| !application.scopes.contains(*scope)) {
        return Err(ScopeRefused::NotHeld(missing));
    }
    Ok(Grant {
        seller: application.owner,
        client_id: application.client_id,
        scopes,
    })
}

/// A family in its current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub id: FamilyId,
    pub seller: SellerId,
    pub client_id: ClientId,
    /// The consented scopes.
    pub scopes: ScopeSet,
    pub status: FamilyStatus,
}

impl Family {
    /// The grant of these scopes by its seller to its application.
    pub const fn grant(&self, scopes: ScopeSet) -> Grant {
        Grant {
            seller: self.seller,
            client_id: self.client_id,
            scopes,
        }
    }
}

/// The states that a family depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyStatus {
    /// It was revoked: by its client, its seller or an operator, or because a code or a refresh token was
    /// used twice.
    pub revoked: bool,
    /// The seller has disconnected the application since.
    pub disconnected: bool,
    /// The seller's account is closed.
    pub closed: bool,
    /// The application's current status and scopes; None once it was deleted.
    pub application: Option<(ApplicationStatus, ScopeSet)>,
}

impl FamilyStatus {
    /// The application's current status and scopes, unless the family has ended for good.
    pub const fn living(&self) -> Result<(ApplicationStatus, ScopeSet), GrantRefusal> {
        match self.application {
            _ if self.disconnected => Err(GrantRefusal::Disconnected),
            Some(application) if !self.revoked && !self.closed => Ok(application),
            _ => Err(GrantRefusal::Revoked),
        }
    }
}

#[cfg(test)]
mod tests;
