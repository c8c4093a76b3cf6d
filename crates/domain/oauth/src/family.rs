//! Token families, and the grants that begin one.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;

use crate::{Application, ApplicationStatus, ClientId, FamilyId, ScopeSet, SecretHash};

/// How a family began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// The application asked for a token of its owner's account.
    ClientCredentials,
    /// The seller consented.
    AuthorizationCode,
    /// The seller made a personal token.
    Personal,
}

impl FamilyKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::ClientCredentials, Self::AuthorizationCode, Self::Personal];

    /// The word in the rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::AuthorizationCode => "authorization_code",
            Self::Personal => "personal",
        }
    }

    /// The kind with the given word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Whose families are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamiliesOf {
    /// Those issued to an application, whichever sellers' they are.
    Application(ClientId),
    /// Those that act for a seller, whichever applications'; personal tokens too.
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

/// What a grant allows: a token of these scopes over this account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The account.
    pub seller: SellerId,
    /// The application.
    pub client_id: ClientId,
    /// The scopes.
    pub scopes: ScopeSet,
}

/// A family with its first token, to be stored in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewToken {
    /// The family's id.
    pub family: FamilyId,
    /// How it began.
    pub kind: FamilyKind,
    /// What it allows.
    pub grant: Grant,
    /// The token's hash.
    pub hash: SecretHash,
    /// None for a personal token that does not expire.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A family of the `client_credentials` flow with its only token, to be stored in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewClientToken {
    /// The family's id.
    pub family: FamilyId,
    /// What it allows.
    pub grant: Grant,
    /// The token's hash.
    pub hash: SecretHash,
    /// How long it lives, from when it is stored on.
    pub lifetime: TimeDelta,
}

/// A token that was issued, in clear for the one time that it is shown.
#[derive(Debug)]
pub struct IssuedToken {
    /// The token.
    pub token: crate::BearerToken,
    /// What it may do.
    pub scopes: ScopeSet,
}

/// A requested scope that cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeRefused {
    /// There is no such scope.
    #[error(transparent)]
    Unknown(#[from] crate::UnknownScope),
    /// The list has spaces alone.
    #[error("`scope` names nothing: leave it out to get all of the application's scopes")]
    Empty,
    /// The application does not hold it.
    #[error("the application does not hold the scope `{0}`")]
    NotHeld(crate::Scope),
}

/// The grant of the `client_credentials` flow: the owner's own account, with the requested scopes, or all of the
/// application's when none is requested.
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

#[cfg(test)]
mod tests;
