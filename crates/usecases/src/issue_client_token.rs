//! An application obtains a token for its owner's account (`client_credentials`).

use chrono::TimeDelta;
use kernel::Randomness;
use oauth::{BearerToken, FamilyId, Grant, InvalidClient, NewClientToken, TokenIssuer, TokenKind};

use crate::{Failure, failure::refuse, repeat};

/// Issues an access token that expires `lifetime` after it is stored. If the application or the account has
/// ended since the client was authenticated, the client gets the refusal of authentication. After a failure
/// the token is not returned.
pub async fn issue_client_token(
    tokens: &dyn TokenIssuer,
    randomness: &dyn Randomness,
    grant: Grant,
    lifetime: TimeDelta,
) -> Result<BearerToken, Failure<InvalidClient>> {
    let family = FamilyId::from(randomness.uuid());
    let token = BearerToken::from_random(TokenKind::Access, family, &randomness.secret());
    let new = NewClientToken {
        family,
        grant,
        hash: token.key().hash,
        lifetime,
    };
    let issued = repeat(|| async { Ok::<_, Failure<InvalidClient>>(tokens.issue(new).await?) });
    if !issued.await? {
        return refuse(InvalidClient::NoLongerValid);
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use kernel::StoreError;
    use oauth::{MockTokenIssuer, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{chance, deadlock};

    /// Issues a token over a store that fails this many times before it responds, and expects the same token
    /// in each call.
    async fn issue(
        times: usize,
        failure: fn() -> StoreError,
        response: bool,
    ) -> Result<BearerToken, Failure<InvalidClient>> {
        let grant = Grant {
            seller: Uuid::from_u128(2).into(),
            client_id: Uuid::from_u128(3).into(),
            scopes: ScopeSet::all(),
        };
        let (mut tokens, lifetime) = (MockTokenIssuer::new(), TimeDelta::hours(12));
        let is_same = move |new: &NewClientToken| {
            new.hash == expected().key().hash && new.grant == grant && new.lifetime == lifetime
        };
        let failing = tokens.expect_issue().times(times).withf(is_same);
        failing.returning(move |_| Err(failure()));
        tokens
            .expect_issue()
            .withf(is_same)
            .returning(move |_| Ok(response));
        issue_client_token(&tokens, &chance(), grant, lifetime).await
    }

    /// The token that `chance` leads to.
    fn expected() -> BearerToken {
        BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
    }

    #[tokio::test]
    async fn a_token_is_stored_again_at_most_three_times_and_only_after_a_lost_transaction() {
        for times in [0, 3] {
            let issued = issue(times, deadlock, true).await.unwrap();
            assert_eq!(issued.reveal(), expected().reveal());
        }
        let unavailable = || StoreError::Unavailable("silence".into());
        for (error, expected) in [
            (
                issue(4, deadlock, true).await,
                r#"Store(Store(Retryable("deadlock")))"#,
            ),
            (
                issue(1, unavailable, true).await,
                r#"Store(Store(Unavailable("silence")))"#,
            ),
            (issue(0, deadlock, false).await, "Refused(NoLongerValid)"),
        ] {
            assert_eq!(format!("{:?}", error.unwrap_err()), expected);
        }
    }
}
