//! A client obtains tokens: one for its owner's account (`client_credentials`), or a pair of an access token and
//! a new refresh token, in exchange for an authorization code or a refresh token.
//!
//! The pair's secrets are made before it is stored. If the store's answer is lost, the same pair can be looked
//! up, and returned if it was stored. If the client's answer is lost, a client that has sent an
//! `Idempotency-Key` repeats its refresh: the secrets are then derived anew, and nothing more is stored.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SealPurpose, Sealer, StoreError};
use oauth::{
    BearerToken, Credential, CredentialKind, Exchange, Family, FamilyId, Grant, GrantRefusal, GrantStore,
    InvalidClient, NewClientToken, StoredCredential, TokenIssuer, TokenKind, Verdict,
};

use crate::failure::{ensure, present};
use crate::{Failure, retry};

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
    let issued = retry(|| async { Ok::<_, Failure<InvalidClient>>(tokens.issue(new).await?) });
    ensure(issued.await?, InvalidClient::NoLongerValid)?;
    Ok(token)
}

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
    /// A repeat: the pair was issued before.
    Repeated(Repeated),
}

/// The pair that a repeated refresh gets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// Its place among those that the call may be a repeat of.
    pub place: usize,
    pub grant: Grant,
    /// What is left of its access token's lifetime.
    pub lifetime: TimeDelta,
}

impl TokenPair {
    /// A new pair for a family.
    pub fn new(randomness: &dyn Randomness, family: FamilyId) -> Self {
        Self::of(family, &randomness.secret(), &randomness.secret())
    }

    /// The pair of a refresh with an `Idempotency-Key`, and those that it had under the other keys of the
    /// server: only who has a server's key, the used token and `key` can make them.
    pub fn repeatable(sealer: &dyn Sealer, used: &Credential, key: &str) -> (Self, Vec<Self>) {
        let family = used.key().family;
        let secrets = |part| {
            let input = format!("{part}\n{}\n{key}", used.reveal());
            sealer.derive(SealPurpose::RefreshedPair, input.as_bytes())
        };
        let ((access, accesses), (refresh, refreshes)) = (secrets("access"), secrets("refresh"));
        let others = accesses.iter().zip(&refreshes);
        let others = others.map(|(access, refresh)| Self::of(family, access, refresh));
        (Self::of(family, &access, &refresh), others.collect())
    }

    fn of(family: FamilyId, access: &[u8; 32], refresh: &[u8; 32]) -> Self {
        Self {
            access: BearerToken::from_random(TokenKind::Access, family, access),
            refresh: Credential::from_random(CredentialKind::RefreshToken, family, refresh),
        }
    }

    /// The grant with which the pair was stored, if it was. Waits for any transaction that holds the family's
    /// lock, including one whose COMMIT is in progress.
    pub async fn stored_grant(&self, grants: &dyn GrantStore) -> Result<Option<Grant>, StoreError> {
        let key = self.access.key();
        let Some(family) = grants.lock_family(key.family).await? else {
            return Ok(None);
        };
        let token = grants.access_token(key).await?;
        Ok(token.map(|token| family.grant(token.scopes)))
    }
}

/// Exchanges a credential for an authenticated client. A replay revokes the family and returns `Ok`, so that
/// it is committed; a refusal changes nothing. A refresh with an `Idempotency-Key` may repeat an earlier one,
/// which then issued one of `repeats`.
pub async fn exchange(
    grants: &dyn GrantStore,
    exchange: &Exchange,
    repeats: &[&TokenPair],
    now: DateTime<Utc>,
) -> Result<Granted, Failure<GrantRefusal>> {
    let key = exchange.presented.key();
    let (family, stored) = present(grants.lock_credential(key).await?, GrantRefusal::Unknown)?;
    let verdict = exchange.presented.judge(&family, &stored, now);
    match verdict.map_err(Failure::Refused)? {
        Verdict::Issue(scopes) => {
            grants.use_credential(key, exchange.pair(scopes, now)).await?;
            Ok(Granted::Pair(family.grant(scopes)))
        }
        Verdict::RevokeFamily => {
            if let Some(repeated) = repeated(grants, &family, &stored, repeats, now).await? {
                return Ok(Granted::Repeated(repeated));
            }
            grants.revoke_family(family.id).await?;
            Ok(Granted::Replayed)
        }
    }
}

/// The pair that the used credential was exchanged for, if it is one of `repeats` and may be returned again.
async fn repeated(
    grants: &dyn GrantStore,
    family: &Family,
    used: &StoredCredential,
    repeats: &[&TokenPair],
    now: DateTime<Utc>,
) -> Result<Option<Repeated>, Failure<GrantRefusal>> {
    let StoredCredential::RefreshToken(used) = used else {
        return Ok(None);
    };
    for (place, pair) in repeats.iter().enumerate() {
        let next = grants.lock_credential(pair.refresh.key()).await?;
        let Some((_, StoredCredential::RefreshToken(next))) = next else {
            continue;
        };
        let Some(scopes) = used.judge_repeat(&next, now).map_err(Failure::Refused)? else {
            return Ok(None);
        };
        let access = grants.access_token(pair.access.key()).await?;
        let expires_at = access.and_then(|token| token.expires_at).unwrap_or(now);
        return Ok(Some(Repeated {
            place,
            grant: family.grant(scopes),
            lifetime: (expires_at - now).max(TimeDelta::zero()),
        }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{
        AccessToken, ClientId, Code, CodeChallenge, CodeExchange, CodeVerifier, Family, MockTokenIssuer,
        Presented, RefreshToken, Scope, ScopeSet, StoredCredential,
    };
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, deadlock, family, now};

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

    fn stored_code() -> StoredCredential {
        StoredCredential::Code(Code {
            redirect_uri: "https://app.example/cb".to_owned(),
            challenge: CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap(),
            expires_at: now() + TimeDelta::minutes(1),
            used_at: None,
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
        for (presented, stored) in [(code(own), stored_code()), (token(own), stored_token(None))] {
            let (asked, key) = (exchange_of(&presented), presented.key());
            let expected = asked.pair(scopes, now());
            assert_eq!(expected.access_expires_at, now() + TimeDelta::hours(12));
            assert_eq!(expected.refresh_expires_at, now() + TimeDelta::days(90));
            let mut tx = finding(&presented, Some((family(), stored)));
            tx.expect_use_credential()
                .once()
                .withf(move |used, pair| *used == key && *pair == expected)
                .returning(|_, _| Ok(()));
            let granted = exchange(&tx, &asked, &[], now()).await.unwrap();
            assert_eq!(granted, Granted::Pair(family().grant(scopes)));
        }
    }

    #[tokio::test]
    async fn a_repeated_refresh_gets_the_pair_of_any_key_of_the_server() {
        let own = family().client_id;
        let (presented, used) = (token(own), stored_token(Some(now())));
        let first = TokenPair::of(family().id, &[3; 32], &[4; 32]);
        let (stored, scopes) = (pair(), ScopeSet::all());
        let mut tx = MockTransaction::new();
        let (asked, next) = (presented.key(), stored.refresh.key());
        tx.expect_lock_credential().returning(move |key| {
            let found = match key {
                key if key == asked => Some(used.clone()),
                key if key == next => Some(stored_token(None)),
                _ => None,
            };
            Ok(found.map(|stored| (family(), stored)))
        });
        let access = stored.access.key();
        tx.expect_access_token()
            .withf(move |key| *key == access)
            .returning(move |_| {
                let expires_at = Some(now() + TimeDelta::hours(1));
                Ok(Some(AccessToken { scopes, expires_at }))
            });
        let repeated = Granted::Repeated(Repeated {
            place: 1,
            grant: family().grant(scopes),
            lifetime: TimeDelta::hours(1),
        });
        let granted = exchange(&tx, &exchange_of(&presented), &[&first, &stored], now()).await;
        assert_eq!(granted.unwrap(), repeated);
        // Where none of them was stored, it is a reuse.
        tx.expect_revoke_family().once().returning(|_| Ok(()));
        let granted = exchange(&tx, &exchange_of(&presented), &[&first], now()).await;
        assert_eq!(granted.unwrap(), Granted::Replayed);
    }

    #[tokio::test]
    async fn a_pair_was_stored_if_its_family_has_its_access_token() {
        let scopes = Some(ScopeSet::all());
        for (exists, stored) in [(true, scopes), (true, None), (false, None)] {
            let (mut tx, access) = (MockTransaction::new(), pair().access.key());
            tx.expect_lock_family()
                .once()
                .returning(move |_| Ok(exists.then(family)));
            let token = stored.map(|scopes| AccessToken {
                scopes,
                expires_at: None,
            });
            tx.expect_access_token()
                .times(usize::from(exists))
                .withf(move |key| *key == access)
                .returning(move |_| Ok(token));
            let expected = stored.map(|scopes| family().grant(scopes));
            assert_eq!(pair().stored_grant(&tx).await.unwrap(), expected);
        }
    }

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
                r#"Store(Store(Retryable(SharedError("deadlock"))))"#,
            ),
            (
                issue(1, unavailable, true).await,
                r#"Store(Store(Unavailable(SharedError("silence"))))"#,
            ),
            (issue(0, deadlock, false).await, "Refused(NoLongerValid)"),
        ] {
            assert_eq!(format!("{:?}", error.unwrap_err()), expected);
        }
    }
}
