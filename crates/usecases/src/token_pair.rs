//! A client exchanges an authorization code or a refresh token for a token pair: an access token and a new
//! refresh token.
//!
//! The pair's secrets are generated before it is stored. If the store's answer is lost, the same pair can be
//! looked up, and returned if it was stored.

use chrono::{DateTime, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    BearerToken, Credential, CredentialKind, Exchange, FamilyId, Grant, GrantRefusal, GrantStore, TokenKind,
    Verdict,
};

use crate::{Failure, failure::refuse};

/// A pair that may not be stored yet.
#[derive(Debug)]
pub struct TokenPair {
    pub access: BearerToken,
    pub refresh: Credential,
}

/// The result of an exchange. Both variants must be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The pair was issued, with this grant.
    Pair(Grant),
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

    /// The grant with which the pair was stored, if it was. Waits for any transaction that holds the family's
    /// lock, including one whose COMMIT is in progress.
    pub async fn stored_grant(&self, grants: &dyn GrantStore) -> Result<Option<Grant>, StoreError> {
        let key = self.access.key();
        let Some(family) = grants.lock_family(key.family).await? else {
            return Ok(None);
        };
        let scopes = grants.stored_scopes(key).await?;
        Ok(scopes.map(|scopes| family.grant(scopes)))
    }
}

/// Exchanges a credential for an authenticated client. A replay revokes the family and returns `Ok`, so that
/// it is committed; a refusal changes nothing.
pub async fn exchange(
    grants: &dyn GrantStore,
    exchange: &Exchange,
    now: DateTime<Utc>,
) -> Result<Granted, Failure<GrantRefusal>> {
    let key = exchange.presented.key();
    let Some((family, stored)) = grants.lock_credential(key).await? else {
        return refuse(GrantRefusal::Unknown);
    };
    let verdict = exchange.presented.judge(&family, &stored, now);
    match verdict.map_err(Failure::Refused)? {
        Verdict::Issue(scopes) => {
            grants.use_credential(key, exchange.pair(scopes, now)).await?;
            Ok(Granted::Pair(family.grant(scopes)))
        }
        Verdict::RevokeFamily => {
            grants.revoke_family(family.id).await?;
            Ok(Granted::Replayed)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{
        ClientId, Code, CodeChallenge, CodeExchange, CodeVerifier, Family, Presented, RefreshToken, Scope,
        ScopeSet, StoredCredential,
    };
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, family, now, refusal};

    fn pair() -> TokenPair {
        TokenPair::new(&chance(), family().id)
    }

    fn code(client_id: ClientId) -> Presented {
        let presented = CodeExchange {
            client_id,
            redirect_uri: "https://app.example/cb".to_owned(),
            verifier: CodeVerifier::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned()).unwrap(),
        };
        let key = Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]).key();
        Presented::Code(key, presented)
    }

    fn token(client_id: ClientId) -> Presented {
        let key = Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32]).key();
        Presented::RefreshToken(key, client_id)
    }

    fn stored_code(used_at: Option<DateTime<Utc>>) -> StoredCredential {
        StoredCredential::Code(Code {
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap(),
            expires_at: now() + TimeDelta::minutes(1),
            used_at,
        })
    }

    fn stored_token(used_at: Option<DateTime<Utc>>) -> StoredCredential {
        StoredCredential::RefreshToken(RefreshToken {
            scopes: ScopeSet::all(),
            expires_at: now() + TimeDelta::days(1),
            used_at,
        })
    }

    fn exchange_of(presented: &Presented) -> Exchange {
        Exchange {
            presented: presented.clone(),
            access: pair().access.key().hash,
            access_lifetime: TimeDelta::hours(12),
            refresh: pair().refresh.key().hash,
            refresh_lifetime: TimeDelta::days(90),
            asked_at: now(),
        }
    }

    /// A transaction that finds this for the key of the credential.
    fn finding(presented: &Presented, found: Option<(Family, StoredCredential)>) -> MockTransaction {
        let (mut tx, key) = (MockTransaction::new(), presented.key());
        tx.expect_lock_credential()
            .once()
            .withf(move |locked| *locked == key)
            .returning(move |_| Ok(found.clone()));
        tx
    }

    #[tokio::test]
    async fn a_code_or_refresh_token_is_exchanged_for_the_pair_with_the_remaining_scopes() {
        let scopes: ScopeSet = [Scope::OffersRead].into_iter().collect();
        let own = family().client_id;
        for (presented, stored) in [(code(own), stored_code(None)), (token(own), stored_token(None))] {
            let (asked, key) = (exchange_of(&presented), presented.key());
            let expected = asked.pair(scopes, now());
            assert_eq!(expected.access_expires_at, now() + TimeDelta::hours(12));
            assert_eq!(expected.refresh_expires_at, now() + TimeDelta::days(90));
            let mut tx = finding(&presented, Some((family(), stored)));
            tx.expect_use_credential()
                .once()
                .withf(move |used, pair| *used == key && *pair == expected)
                .returning(|_, _| Ok(()));
            let granted = exchange(&tx, &asked, now()).await.unwrap();
            assert_eq!(granted, Granted::Pair(family().grant(scopes)));
        }
    }

    #[tokio::test]
    async fn a_second_use_revokes_the_family_but_not_by_another_client() {
        let (own, other, used_at) = (family().client_id, Uuid::from_u128(77).into(), Some(now()));
        for (presented, stored) in [
            (code(own), stored_code(used_at)),
            (token(own), stored_token(used_at)),
        ] {
            let mut tx = finding(&presented, Some((family(), stored)));
            tx.expect_revoke_family()
                .once()
                .withf(|id| *id == family().id)
                .returning(|_| Ok(()));
            let granted = exchange(&tx, &exchange_of(&presented), now()).await.unwrap();
            assert_eq!(granted, Granted::Replayed);
        }
        for (presented, found) in [
            (token(other), Some((family(), stored_token(used_at)))),
            (token(own), None),
            // No credential of one kind has the key of another.
            (token(own), Some((family(), stored_code(None)))),
        ] {
            let tx = finding(&presented, found);
            let refused = exchange(&tx, &exchange_of(&presented), now()).await;
            assert_eq!(refusal(refused), GrantRefusal::Unknown);
        }
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
            let expected = stored.map(|scopes| family().grant(scopes));
            assert_eq!(pair().stored_grant(&tx).await.unwrap(), expected);
        }
    }
}
