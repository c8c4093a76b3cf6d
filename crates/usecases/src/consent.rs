//! The consent screen: shown to a seller, bound to its first viewer, and decided once; and the end of the
//! connection that a consent creates.

use std::net::IpAddr;

use accounts::{AccountStore, Action};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    Application, ApplicationStore, ClientId, Consent, ConsentRefusal, ConsentTicket, Credential,
    CredentialKind, Decision, Denial, FamilyId, GrantStore, NewConsent, ScopeSet, Viewer, granted,
    redirect_url,
};

use crate::failure::{ensure, refuse};
use crate::{Acting, ActingSeller, Announcement, Failure};

/// The response to a request for the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenResponse {
    /// Show it. The ticket requests only the scopes that the application still holds: those are shown, and a
    /// decision about this ticket grants no other, whatever the application holds by then.
    Screen(ConsentTicket),
    /// No decision is needed: redirect to the application with this error.
    Answered(Denial),
}

/// Shows the screen to a viewer and binds it to the first one. A request that cannot be granted to this
/// seller is answered at once (D81) and the screen is consumed. A retry gets that answer again: the first
/// attempt of the same request may have been committed. Whoever opens the page again is refused, as after any
/// decision. `application` is the requesting one, if it still exists.
pub async fn show(
    grants: &dyn GrantStore,
    application: Option<&Application>,
    ticket: &ConsentTicket,
    viewer: Viewer,
    is_retry: bool,
    now: DateTime<Utc>,
) -> Result<ScreenResponse, Failure<ConsentRefusal>> {
    let consent = locked(grants, ticket, viewer, now).await?;
    let open = consent.show(viewer, now);
    if let Err(refusal) = open
        && !(is_retry && refusal == ConsentRefusal::Decided)
    {
        return refuse(refusal);
    }
    check_redirect_uri(application, ticket)?;
    match (granted(application, viewer.seller, ticket.request.scopes), open) {
        (Ok(scopes), Ok(())) => {
            let mut shown = ticket.clone();
            shown.request.scopes = scopes;
            Ok(ScreenResponse::Screen(shown))
        }
        (Ok(_), Err(refusal)) => refuse(refusal),
        (Err(error), Ok(())) => {
            let decided = consent.decide(viewer, now).map_err(Failure::Refused)?;
            grants.save_consent(decided).await?;
            Ok(ScreenResponse::Answered(error))
        }
        (Err(error), Err(_decided)) => Ok(ScreenResponse::Answered(error)),
    }
}

/// The response to the application once the seller has decided.
#[derive(Debug)]
pub enum ConsentResponse {
    Code(Credential),
    Error(Denial),
}

impl ConsentResponse {
    /// The redirect target: the redirect URI with `code` or `error` and `error_description`, `state`, and
    /// `iss` (RFC 9207).
    pub fn redirect(&self, ticket: &ConsentTicket, issuer: &str) -> String {
        let (state, iss) = (("state", ticket.request.state.as_str()), ("iss", issuer));
        let address = &ticket.request.redirect_uri;
        match self {
            Self::Code(code) => redirect_url(address, &[("code", code.reveal()), state, iss]),
            Self::Error(reason) => {
                let (error, description) = (reason.error().as_str(), reason.to_string());
                let parameters = [("error", error), ("error_description", &description), state, iss];
                redirect_url(address, &parameters)
            }
        }
    }
}

/// A seller's decision about a request for consent.
#[derive(Debug, Clone)]
pub struct SellerDecision {
    pub ticket: ConsentTicket,
    pub viewer: Viewer,
    /// The address of the request.
    pub address: IpAddr,
    pub decision: Decision,
}

impl SellerDecision {
    const fn by(&self) -> ActingSeller {
        ActingSeller {
            seller: self.viewer.seller,
            address: self.address,
        }
    }
}

/// A decision, as made in its transaction.
#[derive(Debug)]
pub struct Decided {
    pub response: ConsentResponse,
    /// When it was decided. The screen's `decided_at` has this value from the commit on.
    pub at: DateTime<Utc>,
}

/// Applies the seller's decision. The application's current state decides whether approval is possible (D81).
pub async fn decide(
    grants: &dyn GrantStore,
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    decision: &SellerDecision,
    code_ttl: TimeDelta,
    now: DateTime<Utc>,
) -> Result<Decided, Failure<ConsentRefusal>> {
    let (ticket, viewer, by) = (&decision.ticket, decision.viewer, decision.by());
    let consent = locked(grants, ticket, viewer, now).await?;
    let decided = consent.decide(viewer, now).map_err(Failure::Refused)?;
    let client_id = ticket.request.client_id;
    let application = usable_application(applications, accounts, ticket).await?;
    let response = match decision.decision {
        Decision::Deny => {
            by.log(accounts, Action::ConsentRefused, client_id).await?;
            ConsentResponse::Error(Denial::Refused)
        }
        Decision::Approve => match granted(application.as_ref(), viewer.seller, ticket.request.scopes) {
            Ok(scopes) => {
                let code = grant(grants, randomness, ticket, viewer, scopes, now + code_ttl).await?;
                by.log(accounts, Action::ConsentGiven, client_id).await?;
                ConsentResponse::Code(code)
            }
            Err(error) => ConsentResponse::Error(error),
        },
    };
    grants.save_consent(decided).await?;
    Ok(Decided { response, at: now })
}

/// Whether a decision was committed, when the response to its COMMIT was lost. Locks the screen, and so waits
/// for a transaction that may still decide it.
pub async fn was_committed(
    grants: &dyn GrantStore,
    ticket: &ConsentTicket,
    viewer: Viewer,
    decided: &Decided,
) -> Result<bool, StoreError> {
    let consent = grants.lock_consent(ticket.id, viewer, ticket.expires_at).await?;
    match &decided.response {
        // The family was created in the same transaction as the code.
        ConsentResponse::Code(code) => Ok(grants.lock_family(code.key().family).await?.is_some()),
        ConsentResponse::Error(_) => Ok(consent.decided_at == Some(decided.at)),
    }
}

/// The requesting application, locked, if its owner's account is open. Refused if the redirect URI was
/// removed.
async fn usable_application(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    ticket: &ConsentTicket,
) -> Result<Option<Application>, Failure<ConsentRefusal>> {
    let application = applications.lock_application(ticket.request.client_id).await?;
    let Some(application) = application else {
        return Ok(None);
    };
    check_redirect_uri(Some(&application), ticket)?;
    let owner = accounts.lock_seller(application.owner).await?;
    let open = owner.is_some_and(|owner| owner.closed_at.is_none());
    Ok(open.then_some(application))
}

/// A redirect URI that was removed while the screen was open gets neither a code nor an error.
fn check_redirect_uri(
    application: Option<&Application>,
    ticket: &ConsentTicket,
) -> Result<(), Failure<ConsentRefusal>> {
    let address = &ticket.request.redirect_uri;
    let is_kept = application.is_none_or(|found| found.redirect_uris.contains(address));
    ensure(is_kept, ConsentRefusal::Unknown)
}

async fn grant(
    grants: &dyn GrantStore,
    randomness: &dyn Randomness,
    ticket: &ConsentTicket,
    viewer: Viewer,
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

/// The screen's row, locked. An expired handle creates none.
async fn locked(
    grants: &dyn GrantStore,
    ticket: &ConsentTicket,
    viewer: Viewer,
    now: DateTime<Utc>,
) -> Result<Consent, Failure<ConsentRefusal>> {
    ensure(ticket.expires_at > now, ConsentRefusal::Expired)?;
    Ok(grants.lock_consent(ticket.id, viewer, ticket.expires_at).await?)
}

/// The seller has no connection with this application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such connection")]
pub struct NoSuchConnection;

/// Disconnects: everything that the application holds by this seller's consent is invalid from the commit on,
/// including grants in progress.
pub async fn disconnect(
    grants: &dyn GrantStore,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<NoSuchConnection>> {
    ensure(grants.disconnect(by.seller, client_id).await?, NoSuchConnection)?;
    by.log(accounts, Action::Disconnected, client_id).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
