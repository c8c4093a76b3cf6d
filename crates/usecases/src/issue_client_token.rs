//! An application obtains a token for its owner's account (`client_credentials`).

use chrono::TimeDelta;
use kernel::{Randomness, StoreError};
use oauth::{
    BearerToken, ClientTokens, FamilyId, Grant, InvalidClient, IssuedToken, NewClientToken, TokenKind,
};

use crate::{Failure, failure::refuse};

/// How often storing is repeated if the token was certainly not stored because the transaction lost against another one.
const REPEATS: usize = 3;

/// Issues an access token that expires `lifetime` after it is stored. If the application or the account has ended since the client was
/// authenticated, the client gets the refusal of authentication. After a failure the token is not returned.
pub async fn issue_client_token(
    tokens: &dyn ClientTokens,
    randomness: &dyn Randomness,
    grant: Grant,
    lifetime: TimeDelta,
) -> Result<IssuedToken, Failure<InvalidClient>> {
    let family = FamilyId::from(randomness.uuid());
    let token = BearerToken::from_random(TokenKind::Access, family, &randomness.secret());
    let new = NewClientToken {
        family,
        grant,
        hash: token.key().hash,
        lifetime,
    };
    let mut repeats = 0;
    loop {
        match tokens.issue(new).await {
            Ok(true) => break,
            Ok(false) => return refuse(InvalidClient::Meanwhile),
            Err(StoreError::Retryable(_)) if repeats < REPEATS => repeats += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(IssuedToken {
        token,
        scopes: grant.scopes,
    })
}

#[cfg(test)]
mod tests {
    use oauth::{MockClientTokens, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::UnitOfWorkError;
    use crate::test_support::chance;

    fn grant() -> Grant {
        Grant {
            seller: Uuid::from_u128(2).into(),
            client_id: Uuid::from_u128(3).into(),
            scopes: ScopeSet::all(),
        }
    }

    async fn issue(tokens: MockClientTokens) -> Result<IssuedToken, Failure<InvalidClient>> {
        issue_client_token(&tokens, &chance(), grant(), TimeDelta::hours(12)).await
    }

    /// The expected token if `chance` provides the ids and secrets.
    fn expected() -> BearerToken {
        BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
    }

    /// A store that fails this many times before it succeeds, and expects the same token in each call.
    fn failing(times: usize, failure: fn() -> StoreError) -> MockClientTokens {
        let mut tokens = MockClientTokens::new();
        let hash = expected().key().hash;
        let the_same = move |new: &NewClientToken| {
            new.hash == hash && new.grant == grant() && new.lifetime == TimeDelta::hours(12)
        };
        tokens
            .expect_issue()
            .times(times)
            .withf(the_same)
            .returning(move |_| Err(failure()));
        tokens.expect_issue().withf(the_same).returning(|_| Ok(true));
        tokens
    }

    fn lost() -> StoreError {
        StoreError::Retryable("deadlock".into())
    }

    #[tokio::test]
    async fn the_stored_row_is_the_hash_of_what_is_handed_out() {
        let issued = issue(failing(0, lost)).await.unwrap();
        assert_eq!(issued.token.reveal(), expected().reveal());
        assert_eq!(issued.scopes, grant().scopes);
    }

    #[tokio::test]
    async fn a_token_that_lost_against_others_is_stored_again_three_times_at_most() {
        let issued = issue(failing(3, lost)).await.unwrap();
        assert_eq!(issued.token.reveal(), expected().reveal());
        let error = issue(failing(4, lost)).await.unwrap_err();
        assert!(
            matches!(
                error,
                Failure::Store(UnitOfWorkError::Store(StoreError::Retryable(_)))
            ),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn what_may_have_been_stored_is_not_stored_again() {
        let error = issue(failing(1, || StoreError::Unavailable("silence".into()))).await;
        assert!(
            matches!(
                error,
                Err(Failure::Store(UnitOfWorkError::Store(StoreError::Unavailable(_))))
            ),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn an_application_that_has_ended_meanwhile_is_refused() {
        let mut tokens = MockClientTokens::new();
        tokens.expect_issue().once().returning(|_| Ok(false));
        let refused = issue(tokens).await;
        assert!(
            matches!(refused, Err(Failure::Refused(InvalidClient::Meanwhile))),
            "{refused:?}"
        );
    }
}
