//! A client exchanges an authorization code or a refresh token for a token pair: an access token and a new
//! refresh token.
//!
//! The pair's secrets are generated before it is stored. If the store's answer is lost, the same pair can be looked up, and
//! returned if it was stored.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    BearerToken, ClientId, CodeExchange, Credential, CredentialKind, Exchange, FamilyId, GrantRefusal,
    GrantStore, NewPair, Presented, ScopeSet, TokenKey, TokenKind, Verdict,
};

use crate::{Failure, failure::refuse};

/// A pair that may not be stored yet.
#[derive(Debug)]
pub struct TokenPair {
    pub access: BearerToken,
    pub refresh: Credential,
}

/// Lifetimes of a pair's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// The access token (contract: 12 hours).
    pub access: TimeDelta,
    /// The refresh token (contract: 90 days).
    pub refresh: TimeDelta,
}

/// The result of an exchange. Both variants must be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The pair was issued, with these scopes.
    Pair(ScopeSet),
    /// The credential was used before: the family was revoked.
    Replayed,
}

impl TokenPair {
    /// A new pair for a family.
    pub fn new(randomness: &dyn Randomness, family: FamilyId) -> Self {
        let kind = CredentialKind::RefreshToken;
        Self {
            access: BearerToken::from_random(TokenKind::Access, family, &randomness.secret()),
            refresh: Credential::from_random(kind, family, &randomness.secret()),
        }
    }

    /// The scopes with which the pair was stored, if it was. Waits for any transaction that holds the family's lock, including one whose
    /// COMMIT is in progress.
    pub async fn stored_scopes(&self, grants: &dyn GrantStore) -> Result<Option<ScopeSet>, StoreError> {
        let key = self.access.key();
        match grants.lock_family(key.family).await? {
            Some(_) => grants.stored_scopes(key).await,
            None => Ok(None),
        }
    }

    /// The exchange of a credential for this pair.
    pub fn exchange(&self, presented: Presented, lifetimes: Lifetimes, asked_at: DateTime<Utc>) -> Exchange {
        Exchange {
            presented,
            access: self.access.key().hash,
            access_lifetime: lifetimes.access,
            refresh: self.refresh.key().hash,
            refresh_lifetime: lifetimes.refresh,
            asked_at,
        }
    }

    /// The form in which it is stored.
    fn stored(&self, scopes: ScopeSet, lifetimes: Lifetimes, now: DateTime<Utc>) -> NewPair {
        NewPair {
            scopes,
            access: self.access.key().hash,
            access_expires_at: now + lifetimes.access,
            refresh: self.refresh.key().hash,
            refresh_expires_at: now + lifetimes.refresh,
        }
    }
}

/// Applies a verdict: `store` consumes the credential and stores the pair with these scopes.
async fn apply<S: Future<Output = Result<(), StoreError>>>(
    verdict: Result<Verdict, GrantRefusal>,
    grants: &dyn GrantStore,
    family: FamilyId,
    store: impl FnOnce(ScopeSet) -> S,
) -> Result<Granted, Failure<GrantRefusal>> {
    match verdict.map_err(Failure::Refused)? {
        Verdict::Issue(scopes) => {
            store(scopes).await?;
            Ok(Granted::Pair(scopes))
        }
        Verdict::RevokeFamily => {
            grants.revoke_family(family).await?;
            Ok(Granted::Replayed)
        }
    }
}

/// Exchanges the code with this key for an authenticated client. A replay revokes the family and returns `Ok`, so that
/// it is committed; a refusal changes nothing.
pub async fn exchange_code(
    grants: &dyn GrantStore,
    code: TokenKey,
    presented: &CodeExchange,
    pair: &TokenPair,
    lifetimes: Lifetimes,
    now: DateTime<Utc>,
) -> Result<Granted, Failure<GrantRefusal>> {
    let Some((family, Some(stored))) = grants.lock_code(code).await? else {
        return refuse(GrantRefusal::Unknown);
    };
    let verdict = stored.judge(&family, presented, now);
    apply(verdict, grants, family.id, |scopes| {
        grants.use_code(code, pair.stored(scopes, lifetimes, now))
    })
    .await
}

/// Exchanges the refresh token with this key for an authenticated client. A second use revokes the family and returns
/// `Ok`, so that it is committed; a refusal changes nothing.
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
    apply(verdict, grants, family.id, |scopes| {
        grants.use_refresh_token(token, pair.stored(scopes, lifetimes, now))
    })
    .await
}

#[cfg(test)]
mod tests {
    use oauth::{Code, CodeChallenge, CodeVerifier, Family, RefreshToken, Scope};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, family, lifetimes, now, refusal};

    fn key(kind: CredentialKind) -> TokenKey {
        Credential::from_random(kind, family().id, &[1; 32]).key()
    }

    fn code() -> Code {
        Code {
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap(),
            expires_at: now() + TimeDelta::minutes(1),
            used_at: None,
        }
    }

    fn token() -> RefreshToken {
        RefreshToken {
            scopes: ScopeSet::all(),
            expires_at: now() + TimeDelta::days(1),
            used_at: None,
        }
    }

    /// A transaction that finds this family and code, or no family.
    fn finding_code(found: Option<(Family, Option<Code>)>) -> MockTransaction {
        let mut tx = MockTransaction::new();
        tx.expect_lock_code()
            .once()
            .withf(|locked| *locked == key(CredentialKind::AuthorizationCode))
            .returning(move |_| Ok(found.clone()));
        tx
    }

    fn finding_token(found: Option<(Family, Option<RefreshToken>)>) -> MockTransaction {
        let mut tx = MockTransaction::new();
        tx.expect_lock_refresh_token()
            .once()
            .withf(|locked| *locked == key(CredentialKind::RefreshToken))
            .returning(move |_| Ok(found));
        tx
    }

    async fn exchange(tx: MockTransaction) -> Result<Granted, Failure<GrantRefusal>> {
        let presented = CodeExchange {
            client_id: family().client_id,
            redirect_uri: "https://app.example/cb".to_owned(),
            verifier: CodeVerifier::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned()).unwrap(),
        };
        let (pair, key) = (pair(), key(CredentialKind::AuthorizationCode));
        exchange_code(&tx, key, &presented, &pair, lifetimes(), now()).await
    }

    async fn refresh(tx: MockTransaction, client: ClientId) -> Result<Granted, Failure<GrantRefusal>> {
        let key = key(CredentialKind::RefreshToken);
        refresh_tokens(&tx, key, client, &pair(), lifetimes(), now()).await
    }

    fn pair() -> TokenPair {
        TokenPair::new(&chance(), family().id)
    }

    #[tokio::test]
    async fn a_code_or_refresh_token_is_exchanged_for_the_pair_with_the_remaining_scopes() {
        let scopes: ScopeSet = [Scope::OffersRead].into_iter().collect();
        let expected = pair().stored(scopes, lifetimes(), now());
        assert_eq!(expected.access_expires_at, now() + lifetimes().access);
        assert_eq!(expected.refresh_expires_at, now() + lifetimes().refresh);

        let (mut tx, stored) = (finding_code(Some((family(), Some(code())))), expected);
        tx.expect_use_code()
            .once()
            .withf(move |used, pair| *used == key(CredentialKind::AuthorizationCode) && *pair == stored)
            .returning(|_, _| Ok(()));
        assert_eq!(exchange(tx).await.unwrap(), Granted::Pair(scopes));

        let mut tx = finding_token(Some((family(), Some(token()))));
        tx.expect_use_refresh_token()
            .once()
            .withf(move |used, pair| *used == key(CredentialKind::RefreshToken) && *pair == expected)
            .returning(|_, _| Ok(()));
        let granted = refresh(tx, family().client_id).await.unwrap();
        assert_eq!(granted, Granted::Pair(scopes));
    }

    #[tokio::test]
    async fn a_second_use_revokes_the_family_but_not_by_another_client() {
        let ending = |mut tx: MockTransaction| {
            tx.expect_revoke_family()
                .once()
                .withf(|id| *id == family().id)
                .returning(|_| Ok(()));
            tx
        };
        let used_at = Some(now());
        let code = Code { used_at, ..code() };
        let tx = ending(finding_code(Some((family(), Some(code)))));
        assert_eq!(exchange(tx).await.unwrap(), Granted::Replayed);
        let used = Some((family(), Some(RefreshToken { used_at, ..token() })));
        let granted = refresh(ending(finding_token(used)), family().client_id).await;
        assert_eq!(granted.unwrap(), Granted::Replayed);
        let refused = refresh(finding_token(used), Uuid::from_u128(77).into()).await;
        assert_eq!(refusal(refused), GrantRefusal::Unknown);
    }

    #[tokio::test]
    async fn a_pair_was_stored_if_its_family_has_its_access_token() {
        let scopes = Some(ScopeSet::all());
        for (exists, stored) in [(true, scopes), (true, None), (false, None)] {
            let (mut tx, access) = (MockTransaction::new(), pair().access.key());
            tx.expect_lock_family()
                .once()
                .returning(move |_| Ok(exists.then(family)));
            tx.expect_stored_scopes()
                .times(usize::from(exists))
                .withf(move |key| *key == access)
                .returning(move |_| Ok(stored));
            assert_eq!(pair().stored_scopes(&tx).await.unwrap(), stored);
        }
    }
}
