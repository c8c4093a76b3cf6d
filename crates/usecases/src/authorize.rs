//! An application sends a seller's browser to us to ask for consent: the request is checked, and becomes a handle that the
//! consent screen opens.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, Sealer, StoreError};
use oauth::{ApplicationReader, AuthorizationQuery, AuthorizationRefusal, ConsentTicket};

use crate::Failure;
use crate::consent_ticket::seal;

/// How long the seller may take to decide (D71).
const DECIDE_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// Gives the handle of a request in which nothing is wrong. `now` is the database's time.
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

#[cfg(test)]
mod tests {
    use oauth::{Application, MockApplicationReader, Purpose, RedirectError};
    use uuid::Uuid;

    use super::*;
    use crate::consent_ticket::open;
    use crate::test_support::{self as support, chance, now, sealer};

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
        let ticket = open(&sealer(), &handle).unwrap();
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
}
