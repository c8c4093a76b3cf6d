//! A client exchanges an authorization code for the first pair of tokens.

use chrono::{DateTime, Utc};
use oauth::{CodePresented, GrantRefusal, GrantStore, TokenKey};

use crate::Failure;
use crate::failure::refuse;
use crate::token_pair::{Granted, Lifetimes, TokenPair, carry_out};

/// Exchanges the code with this key, for a client that has authenticated itself. A replay ends the family and is no failure,
/// so that it is committed; every refusal leaves all as it was.
pub async fn exchange_code(
    grants: &dyn GrantStore,
    code: TokenKey,
    presented: &CodePresented,
    pair: &TokenPair,
    lifetimes: Lifetimes,
    now: DateTime<Utc>,
) -> Result<Granted, Failure<GrantRefusal>> {
    let Some((family, Some(stored))) = grants.lock_code(code).await? else {
        return refuse(GrantRefusal::Unknown);
    };
    let verdict = stored.judge(&family, presented, now);
    carry_out(verdict, grants, family.id, |scopes| {
        grants.use_code(code, pair.stored(scopes, lifetimes, now))
    })
    .await
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{Code, CodeChallenge, CodeVerifier, Credential, CredentialKind, Scope, ScopeSet};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, family, lifetimes, now, refusal};

    const BACK: &str = "https://app.example/cb";

    fn code() -> Code {
        Code {
            redirect_uri: BACK.to_owned(),
            challenge: CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap(),
            expires_at: now() + TimeDelta::minutes(1),
            used_at: None,
        }
    }

    fn key() -> TokenKey {
        Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]).key()
    }

    fn keeping(code: Option<Code>) -> MockTransaction {
        let mut grants = MockTransaction::new();
        grants
            .expect_lock_code()
            .once()
            .withf(|asked| *asked == key())
            .returning(move |_| Ok(Some((family(), code.clone()))));
        grants
    }

    async fn exchange(grants: MockTransaction) -> Result<Granted, Failure<GrantRefusal>> {
        let presented = CodePresented {
            client_id: family().client_id,
            redirect_uri: BACK.to_owned(),
            verifier: CodeVerifier::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned()).unwrap(),
        };
        let pair = TokenPair::new(&chance(), family().id);
        exchange_code(&grants, key(), &presented, &pair, lifetimes(), now()).await
    }

    #[tokio::test]
    async fn a_code_gives_the_pair_that_was_made_before() {
        let mut grants = keeping(Some(code()));
        let pair = TokenPair::new(&chance(), family().id);
        let scopes: ScopeSet = [Scope::OffersRead].into_iter().collect();
        let expected = pair.stored(scopes, lifetimes(), now());
        grants
            .expect_use_code()
            .once()
            .withf(move |used, stored| *used == key() && *stored == expected)
            .returning(|_, _| Ok(()));
        assert_eq!(exchange(grants).await.unwrap(), Granted::Pair(scopes));
        assert_eq!(expected.access_expires_at, now() + lifetimes().access);
        assert_eq!(expected.refresh_expires_at, now() + lifetimes().refresh);
    }

    #[tokio::test]
    async fn a_replay_ends_the_family() {
        let mut grants = keeping(Some(Code {
            used_at: Some(now()),
            ..code()
        }));
        grants
            .expect_revoke_family()
            .once()
            .withf(|id| *id == family().id)
            .returning(|_| Ok(()));
        assert_eq!(exchange(grants).await.unwrap(), Granted::FamilyEnded);
    }

    #[tokio::test]
    async fn a_refusal_changes_nothing() {
        let expired = Code {
            expires_at: now(),
            ..code()
        };
        assert_eq!(
            refusal(exchange(keeping(Some(expired))).await),
            GrantRefusal::Expired
        );
        assert_eq!(refusal(exchange(keeping(None)).await), GrantRefusal::Unknown);
        let mut nobody = MockTransaction::new();
        nobody.expect_lock_code().once().returning(|_| Ok(None));
        assert_eq!(refusal(exchange(nobody).await), GrantRefusal::Unknown);
    }
}
