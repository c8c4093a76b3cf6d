//! An application obtains a token for its owner's account (`client_credentials`).

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, StoreError};
use oauth::{BearerToken, FamilyId, FamilyKind, Grant, IssuedToken, NewToken, TokenKind, TokenStore};

/// Issues an access token that ends `lifetime` after `now`. Nothing has to be locked: whether the application and the
/// account still stand is looked at whenever the token is used.
pub async fn issue_client_token(
    tokens: &dyn TokenStore,
    randomness: &dyn Randomness,
    grant: Grant,
    lifetime: TimeDelta,
    now: DateTime<Utc>,
) -> Result<IssuedToken, StoreError> {
    let family = FamilyId::from(randomness.uuid());
    let token = BearerToken::from_random(TokenKind::Access, family, &randomness.secret());
    let new = NewToken {
        family,
        kind: FamilyKind::ClientCredentials,
        grant,
        hash: token.key().hash,
        expires_at: Some(now + lifetime),
    };
    tokens.issue_token(new).await?;
    Ok(IssuedToken {
        token,
        scopes: grant.scopes,
    })
}

#[cfg(test)]
mod tests {
    use oauth::{MockTokenStore, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{chance, now};

    #[tokio::test]
    async fn the_stored_row_is_the_hash_of_what_is_handed_out() {
        let mut tokens = MockTokenStore::new();
        let expected = BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32]);
        let hash = expected.key().hash;
        tokens
            .expect_issue_token()
            .once()
            .withf(move |new| new.hash == hash && new.expires_at == Some(now() + TimeDelta::hours(12)))
            .returning(|_| Ok(()));
        let grant = Grant {
            seller: Uuid::from_u128(2).into(),
            client_id: Uuid::from_u128(3).into(),
            scopes: ScopeSet::all(),
        };
        let issued = issue_client_token(&tokens, &chance(), grant, TimeDelta::hours(12), now())
            .await
            .unwrap();
        assert_eq!(issued.token.reveal(), expected.reveal());
    }
}
