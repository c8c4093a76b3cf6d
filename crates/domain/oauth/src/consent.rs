//! The seller's consent: whom an application may ask, and what becomes of the one screen that asks.

use chrono::{DateTime, Utc};
use kernel::SellerId;
use uuid::Uuid;

use crate::{Application, ApplicationStatus, ClientId, Purpose, RedirectError, ScopeSet, SecretHash};

kernel::uuid_id! {
    /// One screen of consent. It travels inside the sealed handle.
    ConsentId
}

/// Whether the application may ask this seller. Its owner it may always ask; others only once it is active and not
/// registered for own use (D81).
pub fn may_ask(application: &Application, seller: SellerId) -> bool {
    let for_others =
        application.purpose != Purpose::OwnUse && application.status == ApplicationStatus::Active;
    application.owner == seller || for_others
}

/// What the seller's approval gives, judged by the application as it is at that moment: gone, suspended or no longer to
/// ask this seller is `access_denied`; scopes narrowed to nothing `invalid_scope`.
pub fn granted(
    application: Option<&Application>,
    seller: SellerId,
    asked: ScopeSet,
) -> Result<ScopeSet, RedirectError> {
    let application = application.filter(|found| found.status != ApplicationStatus::Suspended);
    let application = application.filter(|found| may_ask(found, seller));
    let held = application.ok_or(RedirectError::AccessDenied)?.scopes;
    let left = asked.intersection(held);
    if left.is_empty() {
        Err(RedirectError::InvalidScope)
    } else {
        Ok(left)
    }
}

/// What the seller decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The application gets what it asks for.
    Approve,
    /// It gets nothing.
    Deny,
}

/// A screen of consent as it is kept from its first display on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent {
    /// Its id.
    pub id: ConsentId,
    /// Who sees it.
    pub viewer: Viewer,
    /// When it can no longer be decided.
    pub expires_at: DateTime<Utc>,
    /// When it was decided.
    pub decided_at: Option<DateTime<Utc>>,
}

/// Who sees a screen: this seller in this session. A session is known by the hash of its cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    /// The session.
    pub session: SecretHash,
    /// The account.
    pub seller: SellerId,
}

/// Why a screen is neither shown nor decided. None of them is told to the application: whoever holds a wrong handle
/// learns nothing and sends nobody anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConsentRefusal {
    /// The handle is not one of ours.
    #[error("there is no such request")]
    Unknown,
    /// Its ten minutes are over.
    #[error("the request has expired")]
    Expired,
    /// It was decided before.
    #[error("the request has been decided already")]
    Decided,
    /// It was first shown to somebody else.
    #[error("the request belongs to another session")]
    AnotherViewer,
}

impl Consent {
    /// Shows the screen to a viewer: the one whom it was shown to first, while it is open.
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

    /// The viewer decides, once.
    pub fn decide(self, viewer: Viewer, now: DateTime<Utc>) -> Result<Self, ConsentRefusal> {
        self.show(viewer, now)?;
        Ok(Self {
            decided_at: Some(now),
            ..self
        })
    }
}

/// What the sealed handle carries from `/oauth/authorize` to the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentTicket {
    /// Names the screen.
    pub id: ConsentId,
    /// What is asked.
    pub request: crate::AuthorizationRequest,
    /// When it can no longer be decided.
    pub expires_at: DateTime<Utc>,
}

impl ConsentTicket {
    /// A new one.
    pub fn new(id: Uuid, request: crate::AuthorizationRequest, expires_at: DateTime<Utc>) -> Self {
        Self {
            id: id.into(),
            request,
            expires_at,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

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
    fn the_owner_may_be_asked_by_any_and_others_by_active_ones_for_others() {
        for purpose in Purpose::ALL {
            for status in [ApplicationStatus::Pending, ApplicationStatus::Active] {
                let application = application(purpose, status);
                assert!(may_ask(&application, seller(1)));
                let fine = purpose != Purpose::OwnUse && status == ApplicationStatus::Active;
                assert_eq!(may_ask(&application, seller(2)), fine, "{purpose:?} {status:?}");
            }
        }
    }

    #[test]
    fn approval_is_judged_by_the_application_of_that_moment() {
        let asked: ScopeSet = [Scope::OffersRead, Scope::OrdersRead].into_iter().collect();
        let active = application(Purpose::Other, ApplicationStatus::Active);
        let left: ScopeSet = [Scope::OffersRead].into_iter().collect();
        assert_eq!(granted(Some(&active), seller(2), asked), Ok(left));
        assert_eq!(granted(None, seller(2), asked), Err(RedirectError::AccessDenied));
        let suspended = application(Purpose::Other, ApplicationStatus::Suspended);
        assert_eq!(
            granted(Some(&suspended), seller(1), asked),
            Err(RedirectError::AccessDenied)
        );
        let narrowed = Application {
            scopes: [Scope::Messaging].into_iter().collect(),
            ..active
        };
        assert_eq!(
            granted(Some(&narrowed), seller(2), asked),
            Err(RedirectError::InvalidScope)
        );
    }

    #[test]
    fn a_screen_is_decided_once_by_whom_it_was_shown_to() {
        let viewer = |n| Viewer {
            session: SecretHash::of(&format!("{n}")),
            seller: seller(1),
        };
        let expires_at = now() + TimeDelta::minutes(10);
        let consent = Consent {
            id: Uuid::nil().into(),
            viewer: viewer(1),
            expires_at,
            decided_at: None,
        };
        assert_eq!(
            consent.decide(viewer(2), now()),
            Err(ConsentRefusal::AnotherViewer)
        );
        assert_eq!(
            consent.decide(viewer(1), expires_at),
            Err(ConsentRefusal::Expired)
        );
        let decided = consent.decide(viewer(1), now()).unwrap();
        assert_eq!(decided.decide(viewer(1), now()), Err(ConsentRefusal::Decided));
        assert_eq!(decided.show(viewer(1), now()), Err(ConsentRefusal::Decided));
    }
}
