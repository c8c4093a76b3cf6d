//! The seller's consent: which sellers an application may ask, and the state of the consent screen.

use chrono::{DateTime, Utc};
use kernel::SellerId;
use uuid::Uuid;

use crate::{Application, ApplicationStatus, ClientId, Purpose, RedirectError, ScopeSet, SecretHash};

kernel::uuid_id! {
    /// The id of a consent screen, contained in the sealed handle.
    ConsentId
}

kernel::words! {
    /// Why the application gets no code, by its word in the access log. The messages are its `error_description`.
    #[derive(thiserror::Error)]
    pub enum Denial {
        #[error("The seller refused.")]
        Refused = "refused",
        #[error("The application is pending: until the marketplace accepts it, it may ask only its owner.")]
        Pending = "pending",
        #[error("The application is registered for own use: it may ask only its owner.")]
        OwnUse = "own_use",
        #[error("The application is deleted or suspended, or its owner's account is closed.")]
        Unusable = "unusable",
        #[error("The application no longer holds any of the requested scopes.")]
        NoScope = "no_scope",
    }
}

impl Denial {
    /// The value of `error`.
    pub const fn error(self) -> RedirectError {
        match self {
            Self::Refused | Self::Pending | Self::OwnUse | Self::Unusable => RedirectError::AccessDenied,
            Self::NoScope => RedirectError::InvalidScope,
        }
    }
}

/// The scopes granted by the seller's approval, judged by the application's current state. It may always ask
/// its owner, and others only if it is active and not registered for own use (D81).
pub fn granted(
    application: Option<&Application>,
    seller: SellerId,
    requested: ScopeSet,
) -> Result<ScopeSet, Denial> {
    let application = application.ok_or(Denial::Unusable)?;
    let is_owner = application.owner == seller;
    match application.status {
        ApplicationStatus::Suspended => return Err(Denial::Unusable),
        _ if !is_owner && application.purpose == Purpose::OwnUse => return Err(Denial::OwnUse),
        ApplicationStatus::Pending if !is_owner => return Err(Denial::Pending),
        ApplicationStatus::Pending | ApplicationStatus::Active => {}
    }
    let left = requested.intersection(application.scopes);
    if left.is_empty() {
        Err(Denial::NoScope)
    } else {
        Ok(left)
    }
}

/// The seller's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The application gets what it requests.
    Approve,
    Deny,
}

/// A consent screen, stored from its first display on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent {
    pub id: ConsentId,
    pub viewer: Viewer,
    pub expires_at: DateTime<Utc>,
    pub decided_at: Option<DateTime<Utc>>,
}

/// The viewer of a screen: a seller in a session. A session is identified by the hash of its cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    pub session: SecretHash,
    pub seller: SellerId,
}

/// Why a screen is neither shown nor decided. None of these reaches the application: the holder of a wrong
/// handle learns nothing and cannot cause a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConsentRefusal {
    #[error("no such request")]
    Unknown,
    /// It expired after ten minutes.
    #[error("the request has expired")]
    Expired,
    #[error("the request is already decided")]
    Decided,
    #[error("the request belongs to another session")]
    AnotherViewer,
}

impl Consent {
    /// Checks that the screen may be shown: only to its first viewer, while it is open.
    pub fn show(&self, viewer: Viewer, now: DateTime<Utc>) -> Result<(), ConsentRefusal> {
        if self.viewer != viewer {
            return Err(ConsentRefusal::AnotherViewer);
        }
        if self.decided_at.is_some() {
            return Err(ConsentRefusal::Decided);
        }
        if self.expires_at <= now {
            return Err(ConsentRefusal::Expired);
        }
        Ok(())
    }

    /// Records the viewer's decision, once.
    pub fn decide(self, viewer: Viewer, now: DateTime<Utc>) -> Result<Self, ConsentRefusal> {
        self.show(viewer, now)?;
        Ok(Self {
            decided_at: Some(now),
            ..self
        })
    }
}

/// The content of the sealed handle between `/oauth/authorize` and the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentTicket {
    pub id: ConsentId,
    pub request: crate::AuthorizationRequest,
    pub expires_at: DateTime<Utc>,
}

impl ConsentTicket {
    pub fn new(id: Uuid, request: crate::AuthorizationRequest, expires_at: DateTime<Utc>) -> Self {
        Self {
            id: id.into(),
            request,
            expires_at,
        }
    }
}

/// A connected application as shown to the seller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedApplication {
    pub client_id: ClientId,
    pub name: String,
    pub owner: SellerId,
    pub owner_name: String,
    pub documentation_url: Option<String>,
    /// The union of the scopes of the newest consents that were not revoked, limited to the application's
    /// current scopes; empty if there are none.
    pub scopes: ScopeSet,
    pub connected_at: DateTime<Utc>,
    /// When it last called the API for this seller, to the minute.
    pub used_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientType, Scope};

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000, 0).unwrap()
    }

    fn seller(n: u128) -> SellerId {
        Uuid::from_u128(n).into()
    }

    fn application(purpose: Purpose, status: ApplicationStatus) -> Application {
        Application {
            purpose,
            status,
            client_type: ClientType::Public,
            redirect_uris: vec!["https://app.example/cb".to_owned()],
            scopes: [Scope::OffersRead].into_iter().collect(),
            built_in: false,
            ..Application::built_in(Uuid::from_u128(9).into(), seller(1), now()).after
        }
    }

    #[test]
    fn any_application_may_ask_its_owner_and_active_ones_for_others_may_ask_others() {
        for purpose in Purpose::ALL {
            for status in [ApplicationStatus::Pending, ApplicationStatus::Active] {
                let application = application(purpose, status);
                let asking = |by| granted(Some(&application), seller(by), application.scopes);
                assert_eq!(asking(1), Ok(application.scopes));
                let expected = match (purpose, status) {
                    (Purpose::OwnUse, _) => Err(Denial::OwnUse),
                    (_, ApplicationStatus::Pending) => Err(Denial::Pending),
                    _ => Ok(application.scopes),
                };
                assert_eq!(asking(2), expected, "{purpose:?} {status:?}");
            }
        }
    }

    #[test]
    fn approval_depends_on_the_applications_current_state() {
        let requested: ScopeSet = [Scope::OffersRead, Scope::OrdersRead].into_iter().collect();
        let active = application(Purpose::Other, ApplicationStatus::Active);
        let suspended = application(Purpose::Other, ApplicationStatus::Suspended);
        let mut narrowed = active.clone();
        narrowed.scopes = [Scope::Messaging].into_iter().collect();
        let left = [Scope::OffersRead].into_iter().collect();
        for (application, by, expected) in [
            (Some(&active), 2, Ok(left)),
            (None, 2, Err(Denial::Unusable)),
            (Some(&suspended), 1, Err(Denial::Unusable)),
            (Some(&narrowed), 2, Err(Denial::NoScope)),
        ] {
            assert_eq!(granted(application, seller(by), requested), expected);
        }
    }
}
