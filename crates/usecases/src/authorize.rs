//! An application redirects a seller's browser here to ask for consent: the request is validated and becomes a handle.
//!
//! The handle travels through the browser to the consent screen. It is sealed, so that it can be neither forged nor
//! changed, and it is opaque to everyone who sees it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Purpose, Randomness, Sealer, StoreError};
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
    Ok(seal(sealer, &ticket).map_err(StoreError::unexpected)?)
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    id: Uuid,
    client_id: Uuid,
    redirect_uri: String,
    scopes: i32,
    /// In base64url: JSON would escape each control character as six bytes, and the handle has to fit into a URL.
    state: String,
    challenge: String,
    /// Microseconds since 1970.
    expires_at: i64,
}

/// The handle, in base64url.
fn seal(sealer: &dyn Sealer, ticket: &ConsentTicket) -> Result<String, serde_json::Error> {
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

/// The content of a handle, expired or not.
pub fn open_ticket(sealer: &dyn Sealer, handle: &str) -> Result<ConsentTicket, ConsentRefusal> {
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
    use oauth::{Application, MockApplicationReader, Purpose, RedirectError};
    use uuid::Uuid;

    use super::*;
    use crate::{test_support as support, test_support::chance, test_support::now, test_support::sealer};

    const CLIENT: &str = "psa_00000000000000000000000000000005";
    const BACK: &str = "https://app.example/cb";

    /// For other sellers, with every scope.
    fn application() -> Application {
        Application {
            purpose: Purpose::ForOtherSellers,
            redirect_uris: vec![BACK.to_owned()],
            ..support::application()
        }
    }

    async fn ask(
        applications: MockApplicationReader,
        change: (&str, &str),
    ) -> Result<String, Failure<AuthorizationRefusal>> {
        let challenge = "x".repeat(43);
        let parameters = [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("redirect_uri", BACK),
            ("scope", "offers:read"),
            ("state", "12345678"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let changed = |(name, value)| (name, if name == change.0 { change.1 } else { value });
        let parameters = parameters.into_iter().map(changed);
        let query = AuthorizationQuery::new(
            parameters
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        );
        authorize(&applications, &sealer(), &chance(), &query, now()).await
    }

    fn knowing() -> MockApplicationReader {
        let mut applications = MockApplicationReader::new();
        applications
            .expect_client()
            .once()
            .returning(|id| Ok((id == application().client_id).then(application)));
        applications
    }

    #[tokio::test]
    async fn a_handle_can_be_decided_for_ten_minutes() {
        let handle = ask(knowing(), ("", "")).await.unwrap();
        let ticket = open_ticket(&sealer(), &handle).unwrap();
        assert_eq!(ticket.expires_at, now() + TimeDelta::minutes(10));
        assert_eq!(ticket.id, Uuid::from_u128(1).into());
        assert_eq!(ticket.request.redirect_uri, BACK);
    }

    #[tokio::test]
    async fn nobody_is_looked_up_for_an_id_that_cannot_be() {
        for odd in ["", "psa_x", "5"] {
            let refused = ask(MockApplicationReader::new(), ("client_id", odd)).await;
            assert!(
                matches!(
                    refused,
                    Err(Failure::Refused(
                        AuthorizationRefusal::Client(_) | AuthorizationRefusal::Direct(_)
                    ))
                ),
                "{odd}"
            );
        }
    }

    #[tokio::test]
    async fn what_the_rules_refuse_gets_no_handle() {
        let refused = ask(knowing(), ("scope", "none")).await;
        let Err(Failure::Refused(AuthorizationRefusal::Redirected { error, .. })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error, RedirectError::InvalidScope);
        let mut away = MockApplicationReader::new();
        away.expect_client()
            .once()
            .returning(|_| Err(StoreError::Unavailable("away".into())));
        assert!(matches!(ask(away, ("", "")).await, Err(Failure::Store(_))));
    }

    /// Reverses all bytes; rejects input that it has not sealed.
    fn turning_sealer() -> MockSealer {
        let mut sealer = MockSealer::new();
        let turned = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<_>>();
        sealer.expect_seal().returning(move |_, _, plain| turned(plain));
        sealer.expect_open().returning(move |purpose, _, sealed| {
            let plain = turned(sealed);
            let fine = purpose == kernel::Purpose::ConsentTicket && plain.starts_with(b"{");
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
        let handle = seal(&turning_sealer(), &ticket).unwrap();
        assert!(
            handle
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        );
        assert_eq!(open_ticket(&turning_sealer(), &handle), Ok(ticket));
        for odd in ["", "abc", "%", &handle[..10]] {
            assert_eq!(
                open_ticket(&turning_sealer(), odd),
                Err(ConsentRefusal::Unknown),
                "{odd}"
            );
        }
    }
}
