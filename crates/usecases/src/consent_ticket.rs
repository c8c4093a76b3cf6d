//! The handle by which a request for consent travels through the seller's browser to the screen that asks: sealed, so that
//! nobody can make or change one, and opaque to whoever sees it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use kernel::{Purpose, Sealer};
use oauth::{AuthorizationRequest, ClientId, CodeChallenge, ConsentRefusal, ConsentTicket, ScopeSet};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
struct Sealed {
    id: Uuid,
    client_id: Uuid,
    redirect_uri: String,
    scopes: i32,
    /// In base64url: control characters would take six bytes each in JSON, and the handle has to fit into a URL.
    state: String,
    challenge: String,
    /// Microseconds since 1970.
    expires_at: i64,
}

/// The handle, in base64url.
pub fn seal(sealer: &dyn Sealer, ticket: &ConsentTicket) -> Result<String, serde_json::Error> {
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
    let plain = serde_json::to_vec(&content)?;
    Ok(URL_SAFE_NO_PAD.encode(sealer.seal(Purpose::ConsentTicket, &[], &plain)))
}

/// What a handle carries, whether or not its time is over.
pub fn open(sealer: &dyn Sealer, handle: &str) -> Result<ConsentTicket, ConsentRefusal> {
    read(sealer, handle).ok_or(ConsentRefusal::Unknown)
}

fn read(sealer: &dyn Sealer, handle: &str) -> Option<ConsentTicket> {
    let bytes = URL_SAFE_NO_PAD.decode(handle).ok()?;
    let plain = sealer.open(Purpose::ConsentTicket, &[], &bytes).ok()?;
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

#[cfg(test)]
mod tests {
    use kernel::{MockSealer, SealError};

    use super::*;
    use crate::test_support::now;

    /// Turns every byte around; what begins otherwise was not sealed here.
    fn sealer() -> MockSealer {
        let mut sealer = MockSealer::new();
        let turned = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<_>>();
        sealer.expect_seal().returning(move |_, _, plain| turned(plain));
        sealer.expect_open().returning(move |purpose, _, sealed| {
            let plain = turned(sealed);
            let fine = purpose == Purpose::ConsentTicket && plain.starts_with(b"{");
            fine.then_some(plain).ok_or(SealError)
        });
        sealer
    }

    #[test]
    fn a_handle_carries_the_whole_request() {
        let request = AuthorizationRequest {
            client_id: Uuid::from_u128(5).into(),
            redirect_uri: "https://app.example/cb?x=1".to_owned(),
            scopes: ScopeSet::all(),
            state: "żółw & co".to_owned(),
            challenge: CodeChallenge::new("x".repeat(43)).unwrap(),
        };
        let ticket = ConsentTicket::new(Uuid::from_u128(7), request, now());
        let handle = seal(&sealer(), &ticket).unwrap();
        assert!(
            handle
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        );
        assert_eq!(open(&sealer(), &handle), Ok(ticket));
        for odd in ["", "abc", "%", &handle[..10]] {
            assert_eq!(open(&sealer(), odd), Err(ConsentRefusal::Unknown), "{odd}");
        }
    }
}
