//! An application: the client program that uses the API on a seller's behalf.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use kernel::{Change, SellerId};

use crate::{
    ApplicationStatus, ClientId, ClientSecret, Registration, ScopeSet, SecretHash, Transition,
    TransitionRefusal,
};

/// The name that `/v1/me` shows for a personal token's application; it cannot be registered.
pub const BUILT_IN_NAME: &str = "Personal tokens";

kernel::words! {
    /// The intended users of an application.
    pub enum Purpose {
        /// Its owner only: active at once.
        OwnUse = "own_use",
        /// Other sellers: requires acceptance.
        ForOtherSellers = "for_other_sellers",
        /// Anything else: requires acceptance.
        Other = "other",
    }
}

impl Purpose {
    /// The initial status of an application with this purpose.
    pub(crate) const fn first_status(self) -> ApplicationStatus {
        match self {
            Self::OwnUse => ApplicationStatus::Active,
            Self::ForOtherSellers | Self::Other => ApplicationStatus::Pending,
        }
    }
}

kernel::words! {
    /// Whether a client can keep a secret (RFC 6749 §2.1); chosen at registration.
    pub enum ClientType {
        /// Authenticates with its secret.
        Confidential = "confidential",
        /// Has no secret.
        Public = "public",
    }
}

/// A registered application that has not been deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub client_id: ClientId,
    pub owner: SellerId,
    /// 3 to 40 characters, unique in the service ignoring case, immutable.
    pub name: String,
    /// Visible only to the owner.
    pub description: Option<String>,
    /// `https`; None for the built-in application.
    pub documentation_url: Option<String>,
    pub purpose: Purpose,
    pub client_type: ClientType,
    /// The registered redirect URIs, compared character by character.
    pub redirect_uris: Vec<String>,
    /// The scopes it may request; removing some takes effect on existing tokens.
    pub scopes: ScopeSet,
    /// The scopes of the marketplace's last decision; None before the first one. See [`Self::ceiling`].
    pub granted: Option<ScopeSet>,
    /// The scopes beyond the ceiling that its owner requests; without effect until the marketplace accepts
    /// them.
    pub requested: ScopeSet,
    pub status: ApplicationStatus,
    /// Requests a minute on `/v1`; None means the service's default.
    pub rate_limit: Option<NonZeroU32>,
    /// True for the application that carries a seller's personal tokens.
    pub built_in: bool,
    /// The hash of its secret; None for a public client and the built-in one.
    pub secret: Option<SecretHash>,
    pub created_at: DateTime<Utc>,
}

/// An application's rate limit as the operator sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimit {
    /// The service's default, including later changes of it.
    Default,
    Own(NonZeroU32),
}

impl RateLimit {
    /// The application's own limit, if it has one.
    pub const fn own(self) -> Option<NonZeroU32> {
        match self {
            Self::Default => None,
            Self::Own(limit) => Some(limit),
        }
    }
}

/// Who registers an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrar {
    /// The seller, in the panel: the marketplace is notified.
    Seller,
    /// The marketplace, for the seller: it is not notified of its own action.
    Marketplace,
}

kernel::words! {
    /// An event of an application, by its name in the change feed.
    pub enum ApplicationEvent {
        /// A seller registered an application; the operator may have to review it.
        Registered = "application.registered",
        /// Its owner requests scopes beyond the ceiling.
        ScopesRequested = "application.scopes_requested",
        /// Its owner replaced its redirect URIs.
        Changed = "application.changed",
    }
}

impl Application {
    /// Registers an application. Only a confidential client gets `secret`.
    pub fn register(
        registration: Registration,
        client_id: ClientId,
        secret: &ClientSecret,
        owner: SellerId,
        by: Registrar,
        now: DateTime<Utc>,
    ) -> Change<Self, ApplicationEvent> {
        let application = Self {
            client_id,
            owner,
            name: registration.name,
            description: registration.description,
            documentation_url: Some(registration.documentation_url),
            purpose: registration.purpose,
            client_type: registration.client_type,
            redirect_uris: registration.redirect_uris,
            scopes: registration.scopes,
            granted: None,
            requested: ScopeSet::default(),
            status: registration.purpose.first_status(),
            rate_limit: None,
            built_in: false,
            secret: (registration.client_type == ClientType::Confidential).then(|| secret.hash()),
            created_at: now,
        };
        let events = match by {
            Registrar::Seller => vec![ApplicationEvent::Registered],
            Registrar::Marketplace => Vec::new(),
        };
        Change::created(application, events)
    }

    /// The application that carries a seller's personal tokens. It has every scope, so that a personal
    /// token's own scopes are the effective ones, and no secret, so that no client can obtain tokens through
    /// it.
    pub fn built_in(
        client_id: ClientId,
        owner: SellerId,
        now: DateTime<Utc>,
    ) -> Change<Self, ApplicationEvent> {
        let application = Self {
            client_id,
            owner,
            name: BUILT_IN_NAME.to_owned(),
            description: None,
            documentation_url: None,
            purpose: Purpose::OwnUse,
            client_type: ClientType::Public,
            redirect_uris: Vec::new(),
            scopes: ScopeSet::all(),
            granted: None,
            requested: ScopeSet::default(),
            status: ApplicationStatus::Active,
            rate_limit: None,
            built_in: true,
            secret: None,
            created_at: now,
        };
        Change::created(application, Vec::new())
    }

    /// What the marketplace granted; the owner reaches nothing beyond it. None if there is no limit: before
    /// acceptance, and for applications for own use until an operator sets their scopes.
    ///
    /// An application that was accepted by an older program has no stored grant: its scopes are the grant.
    pub fn ceiling(&self) -> Option<ScopeSet> {
        let is_accepted = self.purpose != Purpose::OwnUse && self.status != ApplicationStatus::Pending;
        self.granted.or(is_accepted.then_some(self.scopes))
    }

    /// All scopes that its owner wants: those in effect and those requested.
    pub const fn wanted(&self) -> ScopeSet {
        self.scopes.union(self.requested)
    }

    /// The scopes that an acceptance would add; all of them while it is pending.
    pub fn request(&self) -> ScopeSet {
        match self.status {
            ApplicationStatus::Pending => self.wanted(),
            ApplicationStatus::Active | ApplicationStatus::Suspended => self.requested,
        }
    }

    /// Applies an operator's transition. An acceptance grants the requested scopes; it is refused if they are
    /// not the ones that the operator saw (`expected`), and a pending application gets exactly those. Without
    /// a request the grant stays, and `expected` must equal it.
    pub fn moved(
        self,
        transition: Transition,
        expected: Option<ScopeSet>,
    ) -> Result<Change<Self, ApplicationEvent>, TransitionRefusal> {
        let status = self.status.after(transition)?;
        let request = self.request();
        if transition != Transition::Accept || request.is_empty() {
            let granted = self.ceiling().unwrap_or(self.scopes);
            return match expected {
                Some(expected) if expected != granted => Err(TransitionRefusal::Request(request)),
                _ => Ok(Change::of_existing(Self { status, ..self }, Vec::new())),
            };
        }
        if expected.is_some_and(|expected| expected != request) {
            return Err(TransitionRefusal::Request(request));
        }
        let granted = match expected {
            Some(named) if self.status == ApplicationStatus::Pending => named,
            _ => self.ceiling().unwrap_or(self.scopes).union(self.requested),
        };
        let after = Self {
            status,
            scopes: self.wanted(),
            granted: Some(granted),
            requested: ScopeSet::default(),
            ..self
        };
        Ok(Change::of_existing(after, Vec::new()))
    }

    /// Sets the limit, the scopes, or both, on behalf of the operator. Scopes become the ceiling, and settle
    /// the owner's request.
    #[must_use]
    pub fn adjusted(
        self,
        rate_limit: Option<RateLimit>,
        scopes: Option<ScopeSet>,
    ) -> Change<Self, ApplicationEvent> {
        let after = Self {
            rate_limit: rate_limit.map_or(self.rate_limit, RateLimit::own),
            scopes: scopes.unwrap_or(self.scopes),
            granted: scopes.or(self.granted),
            requested: scopes.map_or(self.requested, |_| ScopeSet::default()),
            ..self
        };
        Change::of_existing(after, Vec::new())
    }

    /// Replaces the secret. The old one stops working at once, issued tokens stay valid.
    pub fn with_secret(self, secret: &ClientSecret) -> Change<Self, ApplicationEvent> {
        Change::of_existing(
            Self {
                secret: Some(secret.hash()),
                ..self
            },
            Vec::new(),
        )
    }
}

/// Why a client is rejected. The message is returned to the caller: it does not reveal which part of the
/// credentials is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClient {
    #[error("unknown client_id or wrong client_secret")]
    Credentials,
    #[error("this client is confidential: send its client_secret, by HTTP Basic or in the body")]
    SecretMissing,
    #[error("this client is public and has no secret: send its client_id alone, in the body")]
    SecretOfPublic,
    /// `is_proved` if the client has authenticated, or sent a token of its own that can still be used.
    #[error("this application is suspended: ask the marketplace why")]
    Suspended { is_proved: bool },
    /// Shown only to an authenticated client.
    #[error("the account of this application's owner is closed")]
    Closed,
    /// Never shown: to clients, a deleted application is unknown.
    #[error("{}", Self::Credentials)]
    Deleted,
    /// The application or the account has ended, or its scopes were narrowed, since the client was
    /// authenticated.
    #[error("this application was suspended, deleted or narrowed in the meantime")]
    NoLongerValid,
}

impl InvalidClient {
    /// The machine-readable cause (D141); None if the caller must not learn it.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Suspended { is_proved: true } | Self::Closed => Some(self.cause()),
            _ => None,
        }
    }

    /// The cause for the log.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Credentials | Self::SecretOfPublic => "credentials",
            Self::SecretMissing => "secret_missing",
            Self::Suspended { .. } => "suspended",
            Self::Closed => "closed",
            Self::Deleted => "deleted",
            Self::NoLongerValid => "no_longer_valid",
        }
    }

    /// The refusal as shown to a client with this secret: a wrong one does not reveal that the account is
    /// closed.
    #[must_use]
    pub fn disclosed_to(self, application: &Application, secret: &str) -> Self {
        match self {
            Self::Closed if application.secret != Some(SecretHash::of(secret)) => Self::Credentials,
            refusal => refusal,
        }
    }
}

/// Authenticates a client. An empty secret counts as none. A public client sends none. The secret is checked before the
/// status, so that only an authenticated client learns it.
pub fn authenticate(application: &Application, secret: &str) -> Result<(), InvalidClient> {
    match (application.client_type, secret) {
        (ClientType::Public, "") => {}
        (ClientType::Public, _) => return Err(InvalidClient::SecretOfPublic),
        (ClientType::Confidential, "") => return Err(InvalidClient::SecretMissing),
        (_, presented) if application.secret == Some(SecretHash::of(presented)) => {}
        _ => return Err(InvalidClient::Credentials),
    }
    if application.status == ApplicationStatus::Suspended {
        let is_proved = application.client_type == ClientType::Confidential;
        return Err(InvalidClient::Suspended { is_proved });
    }
    Ok(())
}
