//! An application redirects a seller's browser here to ask for consent: the request is validated and becomes
//! a handle.
//!
//! The handle travels through the browser to the consent screen. It is sealed, so that it can be neither
//! forged nor changed, and it is opaque to everyone who sees it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SealPurpose, Sealer, StoreError};
use oauth::{
    ApplicationReader, AuthorizationQuery, AuthorizationRefusal, AuthorizationRequest, ClientId,
    CodeChallenge, ConsentRefusal, ConsentTicket, ScopeSet,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Failure;

/// Time limit of the seller's decision (D71).
const DECIDE_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// Returns the handle of a valid request. `now` is the database's time.
pub async fn authorize(
    applications: &dyn ApplicationReader,
    sealer: &dyn Sealer,
    randomness: &dyn Randomness,
    query: &AuthorizationQuery,
    now: DateTime<Utc>,
) -> Result<String, Failure<AuthorizationRefusal>> {
    let application = match query.client_id().map_err(Failure::Refused)? {
        Some(client_id) => applications.client(client_id).await?,
        None => None,
    };
    let request = query.check(application.as_ref()).map_err(Failure::Refused)?;
    let ticket = ConsentTicket::new(randomness.uuid(), request, now + DECIDE_WITHIN);
    Ok(seal_ticket(sealer, &ticket)?)
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    id: Uuid,
    client_id: Uuid,
    redirect_uri: String,
    scopes: i32,
    /// In base64url: JSON would escape each control character as six bytes, and the handle has to fit into a
    /// URL.
    state: String,
    challenge: String,
    /// Microseconds since 1970.
    expires_at: i64,
}

/// The handle, in base64url.
pub fn seal_ticket(sealer: &dyn Sealer, ticket: &ConsentTicket) -> Result<String, StoreError> {
    let request = &ticket.request;
    let content = Sealed {
        id: ticket.id.uuid(),
        client_id: request.client_id.uuid(),
        redirect_uri: request.redirect_uri.clone(),
        scopes: request.scopes.bits(),
        state: URL_SAFE_NO_PAD.encode(&request.state),
        challenge: request.challenge.as_str().to_owned(),
        expires_at: ticket.expires_at.timestamp_micros(),
    };
    let plain = serde_json::to_vec(&content).map_err(StoreError::unexpected)?;
    Ok(URL_SAFE_NO_PAD.encode(sealer.seal(SealPurpose::ConsentTicket, &[], &plain)))
}

/// The content of a handle, expired or not.
pub fn open_ticket(sealer: &dyn Sealer, handle: &str) -> Result<ConsentTicket, ConsentRefusal> {
    read(sealer, handle).ok_or(ConsentRefusal::Unknown)
}

fn read(sealer: &dyn Sealer, handle: &str) -> Option<ConsentTicket> {
    let bytes = URL_SAFE_NO_PAD.decode(handle).ok()?;
    let plain = sealer.open(SealPurpose::ConsentTicket, &[], &bytes).ok()?;
    let content: Sealed = serde_json::from_slice(&plain).ok()?;
    let request = AuthorizationRequest {
        client_id: ClientId::from(content.client_id),
        redirect_uri: content.redirect_uri,
        scopes: ScopeSet::from_bits(content.scopes).ok()?,
        state: String::from_utf8(URL_SAFE_NO_PAD.decode(content.state).ok()?).ok()?,
        challenge: CodeChallenge::new(content.challenge).ok()?,
    };
    let expires_at = DateTime::<Utc>::from_timestamp_micros(content.expires_at)?;
    Some(ConsentTicket::new(content.id, request, expires_at))
}
