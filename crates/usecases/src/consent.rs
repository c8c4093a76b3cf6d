//! The screen of consent: shown to a seller, bound to whom it was shown to first, and decided once; and the end of the connection
//! that a consent makes.

use accounts::{AccountStore, Action};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    Application, ApplicationStore, ClientId, Consent, ConsentRefusal, ConsentTicket, Credential,
    CredentialKind, Decision, FamilyId, GrantStore, NewConsent, RedirectError, ScopeSet, Viewer, answer_to,
    granted,
};

use crate::{ActingSeller, Failure, failure::refuse};

/// What becomes of a request to see the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// It is shown: what is asked for, as far as the application may still have it.
    Screen(ScopeSet),
    /// Nobody has to be asked: the answer goes back to the application.
    Answered(RedirectError),
}

/// Shows the screen to a viewer, and binds it to them where nobody has seen it. What cannot be granted to this seller whatever
/// they decide is answered at once (D81), and the screen is used up. To the same viewer that answer is given again for as long as
/// it holds: it tells no secret, and the first one may have been lost. `application` is the one that asks, where it still stands.
pub async fn show(
    grants: &dyn GrantStore,
    application: Option<&Application>,
    (ticket, viewer): (&ConsentTicket, Viewer),
    now: DateTime<Utc>,
) -> Result<Shown, Failure<ConsentRefusal>> {
    let consent = locked(grants, ticket, viewer, now).await?;
    let open = consent.show(viewer, now);
    if let Err(refusal) = open
        && refusal != ConsentRefusal::Decided
    {
        return refuse(refusal);
    }
    check_address(application, ticket)?;
    match (granted(application, viewer.seller, ticket.request.scopes), open) {
        (Ok(scopes), Ok(())) => Ok(Shown::Screen(scopes)),
        (Ok(_), Err(refusal)) => refuse(refusal),
        (Err(error), Ok(())) => {
            let decided = consent.decide(viewer, now).map_err(Failure::Refused)?;
            grants.save_consent(decided).await?;
            Ok(Shown::Answered(error))
        }
        (Err(error), Err(_decided)) => Ok(Shown::Answered(error)),
    }
}

/// What goes back to the application once the seller has decided.
#[derive(Debug)]
pub enum Outcome {
    /// The code for the exchange.
    Code(Credential),
    /// No code, for this reason.
    Error(RedirectError),
}

impl Outcome {
    /// Where the browser goes: the redirect address with `code` or `error`, the `state`, and who answers (RFC 9207).
    pub fn redirect(&self, ticket: &ConsentTicket, issuer: &str) -> String {
        let (name, value) = match self {
            Self::Code(code) => ("code", code.reveal()),
            Self::Error(error) => ("error", error.as_str()),
        };
        let parameters = [(name, value), ("state", &ticket.request.state), ("iss", issuer)];
        answer_to(&ticket.request.redirect_uri, &parameters)
    }
}

/// A decision, as its transaction made it.
#[derive(Debug)]
pub struct Made {
    /// What goes back.
    pub outcome: Outcome,
    /// When it was made: the screen carries this instant from the commit on.
    pub at: DateTime<Utc>,
}

/// The seller decides. Approval is judged by the application as it is now (D81): consent, code and decision are one change.
pub async fn decide(
    (grants, applications, accounts): (&dyn GrantStore, &dyn ApplicationStore, &dyn AccountStore),
    randomness: &dyn Randomness,
    (ticket, viewer): (&ConsentTicket, Viewer),
    decision: Decision,
    (by, code_ttl): (ActingSeller, TimeDelta),
    now: DateTime<Utc>,
) -> Result<Made, Failure<ConsentRefusal>> {
    let consent = locked(grants, ticket, viewer, now).await?;
    let decided = consent.decide(viewer, now).map_err(Failure::Refused)?;
    let client_id = ticket.request.client_id;
    let outcome = match decision {
        Decision::Deny => {
            by.note(accounts, Action::ConsentRefused, client_id).await?;
            Outcome::Error(RedirectError::AccessDenied)
        }
        Decision::Approve => {
            let application = standing(applications, accounts, ticket).await?;
            check_address(application.as_ref(), ticket)?;
            match granted(application.as_ref(), viewer.seller, ticket.request.scopes) {
                Ok(scopes) => {
                    let code = grant(grants, randomness, (ticket, viewer), scopes, now + code_ttl).await?;
                    by.note(accounts, Action::ConsentGiven, client_id).await?;
                    Outcome::Code(code)
                }
                Err(error) => Outcome::Error(error),
            }
        }
    };
    grants.save_consent(decided).await?;
    Ok(Made { outcome, at: now })
}

/// Whether a decision was committed, where the answer to its COMMIT was lost. The screen is locked, which waits for the end of
/// a transaction that still decides it.
pub async fn stands(
    grants: &dyn GrantStore,
    (ticket, viewer): (&ConsentTicket, Viewer),
    made: &Made,
) -> Result<bool, StoreError> {
    let consent = grants.lock_consent(ticket.id, viewer, ticket.expires_at).await?;
    match &made.outcome {
        // The family was made for this code, and with it.
        Outcome::Code(code) => Ok(grants.lock_family(code.key().family).await?.is_some()),
        Outcome::Error(_) => Ok(consent.decided_at == Some(made.at)),
    }
}

/// The application that asks, locked, while its owner's account is open.
async fn standing(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    ticket: &ConsentTicket,
) -> Result<Option<Application>, StoreError> {
    let application = applications.lock_application(ticket.request.client_id).await?;
    let Some(application) = application else {
        return Ok(None);
    };
    let owner = accounts.lock_seller(application.owner).await?;
    let open = owner.is_some_and(|owner| owner.closed_at.is_none());
    Ok(open.then_some(application))
}

/// An address that was taken away while the screen was open gets no code any more, nor any other answer.
fn check_address(
    application: Option<&Application>,
    ticket: &ConsentTicket,
) -> Result<(), Failure<ConsentRefusal>> {
    let address = &ticket.request.redirect_uri;
    match application {
        Some(found) if !found.redirect_uris.contains(address) => refuse(ConsentRefusal::Unknown),
        _ => Ok(()),
    }
}

async fn grant(
    grants: &dyn GrantStore,
    randomness: &dyn Randomness,
    (ticket, viewer): (&ConsentTicket, Viewer),
    scopes: ScopeSet,
    expires_at: DateTime<Utc>,
) -> Result<Credential, StoreError> {
    let family = FamilyId::from(randomness.uuid());
    let code = Credential::from_random(CredentialKind::AuthorizationCode, family, &randomness.secret());
    let consent = NewConsent {
        family,
        seller: viewer.seller,
        client_id: ticket.request.client_id,
        scopes,
        code: code.key().hash,
        redirect_uri: ticket.request.redirect_uri.clone(),
        challenge: ticket.request.challenge.clone(),
        expires_at,
    };
    grants.add_consent(consent).await?;
    Ok(code)
}

/// Gives the screen up, so that another account can be used for it. One that is somebody else's, or decided, stays as it is.
pub async fn release(
    grants: &dyn GrantStore,
    ticket: &ConsentTicket,
    viewer: Viewer,
) -> Result<bool, StoreError> {
    grants.release_consent(ticket.id, viewer).await
}

/// The screen's row, locked. An expired handle makes none.
async fn locked(
    grants: &dyn GrantStore,
    ticket: &ConsentTicket,
    viewer: Viewer,
    now: DateTime<Utc>,
) -> Result<Consent, Failure<ConsentRefusal>> {
    if ticket.expires_at <= now {
        return refuse(ConsentRefusal::Expired);
    }
    Ok(grants.lock_consent(ticket.id, viewer, ticket.expires_at).await?)
}

/// The seller has no connection with this application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such connection")]
pub struct NoSuchConnection;

/// Disconnects: all that the application holds by this seller's consent is dead from the commit on, and what is in the making
/// dies too.
pub async fn disconnect(
    grants: &dyn GrantStore,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<NoSuchConnection>> {
    if !grants.disconnect(by.seller, client_id).await? {
        return refuse(NoSuchConnection);
    }
    by.note(accounts, Action::Disconnected, client_id).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
