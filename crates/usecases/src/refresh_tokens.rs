//! A client exchanges a refresh token for the next pair of tokens.

use chrono::{DateTime, Utc};
use oauth::{ClientId, GrantRefusal, GrantStore, TokenKey};

use crate::Failure;
use crate::failure::refuse;
use crate::token_pair::{Granted, Lifetimes, TokenPair, carry_out};

/// Exchanges the refresh token with this key, for a client that has authenticated itself. A second use ends the family and
/// is no failure, so that it is committed; every refusal leaves all as it was.
pub async fn refresh_tokens(
    grants: &dyn GrantStore,
    token: TokenKey,
    client_id: ClientId,
    pair: &TokenPair,
    lifetimes: Lifetimes,
    now: DateTime<Utc>,
) -> Result<Granted, Failure<GrantRefusal>> {
    let Some((family, Some(stored))) = grants.lock_refresh_token(token).await? else {
        return refuse(GrantRefusal::Unknown);
    };
    let verdict = stored.judge(&family, client_id, now);
    carry_out(verdict, grants, family.id, |scopes| {
        grants.use_refresh_token(token, pair.stored(scopes, lifetimes, now))
    })
    .await
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{Credential, CredentialKind, RefreshToken, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, family, lifetimes, now, refusal};

    fn token() -> RefreshToken {
        RefreshToken {
            scopes: ScopeSet::all(),
            expires_at: now() + TimeDelta::days(1),
            used_at: None,
        }
    }

    fn key() -> TokenKey {
        Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32]).key()
    }

    fn keeping(token: Option<RefreshToken>) -> MockTransaction {
        let mut grants = MockTransaction::new();
        grants
            .expect_lock_refresh_token()
            .once()
            .withf(|asked| *asked == key())
            .returning(move |_| Ok(Some((family(), token))));
        grants
    }

    async fn refresh(grants: MockTransaction, client: ClientId) -> Result<Granted, Failure<GrantRefusal>> {
        let pair = TokenPair::new(&chance(), family().id);
        refresh_tokens(&grants, key(), client, &pair, lifetimes(), now()).await
    }

    #[tokio::test]
    async fn a_token_gives_the_pair_that_was_made_before_with_what_the_application_still_holds() {
        let mut grants = keeping(Some(token()));
        let (_, held) = family().standing.application.unwrap();
        let expected = TokenPair::new(&chance(), family().id).stored(held, lifetimes(), now());
        grants
            .expect_use_refresh_token()
            .once()
            .withf(move |used, stored| *used == key() && *stored == expected)
            .returning(|_, _| Ok(()));
        let granted = refresh(grants, family().client_id).await.unwrap();
        assert_eq!(granted, Granted::Pair(held));
    }

    #[tokio::test]
    async fn a_second_use_ends_the_family_but_not_by_another_client() {
        let used = RefreshToken {
            used_at: Some(now()),
            ..token()
        };
        let mut grants = keeping(Some(used));
        grants.expect_revoke_family().once().returning(|_| Ok(()));
        let granted = refresh(grants, family().client_id).await.unwrap();
        assert_eq!(granted, Granted::FamilyEnded);
        let other = ClientId::from(Uuid::from_u128(77));
        assert_eq!(
            refusal(refresh(keeping(Some(used)), other).await),
            GrantRefusal::Unknown
        );
    }

    #[tokio::test]
    async fn a_token_that_nobody_has_gives_nothing() {
        let client = family().client_id;
        assert_eq!(
            refusal(refresh(keeping(None), client).await),
            GrantRefusal::Unknown
        );
        let mut nobody = MockTransaction::new();
        nobody.expect_lock_refresh_token().once().returning(|_| Ok(None));
        assert_eq!(refusal(refresh(nobody, client).await), GrantRefusal::Unknown);
    }
}
