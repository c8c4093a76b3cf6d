//! A pair of tokens in the making: an access token, and the refresh token that follows it.
//!
//! Its secrets are made before the transaction that stores it. Where the answer to the COMMIT is lost, the same pair can so
//! be asked for, and handed out if it stands.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    BearerToken, Credential, CredentialKind, FamilyId, GrantRefusal, GrantStore, NewPair, ScopeSet,
    TokenKind, Verdict,
};

use crate::Failure;
use crate::failure::refuse;

/// A pair that may be stored or not.
#[derive(Debug)]
pub struct TokenPair {
    /// The access token.
    pub access: BearerToken,
    /// The refresh token.
    pub refresh: Credential,
}

/// How long a pair lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// The access token (contract: 12 hours).
    pub access: TimeDelta,
    /// The refresh token (contract: 90 days).
    pub refresh: TimeDelta,
}

/// What a code or a refresh token has brought about. Both are to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The pair, with these scopes.
    Pair(ScopeSet),
    /// The end of the family: it was used before.
    FamilyEnded,
}

impl TokenPair {
    /// A new pair of a family.
    pub fn new(randomness: &dyn Randomness, family: FamilyId) -> Self {
        let kind = CredentialKind::RefreshToken;
        Self {
            access: BearerToken::from_random(TokenKind::Access, family, &randomness.secret()),
            refresh: Credential::from_random(kind, family, &randomness.secret()),
        }
    }

    /// Whether the pair was stored. It waits for whoever holds the family, be it a transaction whose COMMIT is under way.
    pub async fn stands(&self, grants: &dyn GrantStore) -> Result<bool, StoreError> {
        let key = self.access.key();
        Ok(grants.lock_family(key.family).await?.is_some() && grants.has_access_token(key).await?)
    }

    /// As it is stored.
    pub(crate) fn stored(&self, scopes: ScopeSet, lifetimes: Lifetimes, now: DateTime<Utc>) -> NewPair {
        NewPair {
            scopes,
            access: self.access.key().hash,
            access_expires_at: now + lifetimes.access,
            refresh: self.refresh.key().hash,
            refresh_expires_at: now + lifetimes.refresh,
        }
    }
}

/// Carries a verdict out: `store` uses the credential up and stores the pair with these scopes.
pub(crate) async fn carry_out<S: Future<Output = Result<(), StoreError>>>(
    verdict: Verdict,
    grants: &dyn GrantStore,
    family: FamilyId,
    store: impl FnOnce(ScopeSet) -> S,
) -> Result<Granted, Failure<GrantRefusal>> {
    match verdict {
        Verdict::Issue(scopes) => {
            store(scopes).await?;
            Ok(Granted::Pair(scopes))
        }
        Verdict::RevokeFamily => {
            grants.revoke_family(family).await?;
            Ok(Granted::FamilyEnded)
        }
        Verdict::Refuse(refusal) => refuse(refusal),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, family};

    #[tokio::test]
    async fn a_pair_stands_when_its_family_has_its_access_token() {
        let pair = TokenPair::new(&chance(), Uuid::from_u128(8).into());
        let access = pair.access.key();
        for stands in [true, false] {
            let mut grants = MockTransaction::new();
            grants
                .expect_lock_family()
                .once()
                .returning(|_| Ok(Some(family())));
            grants
                .expect_has_access_token()
                .once()
                .withf(move |key| *key == access)
                .returning(move |_| Ok(stands));
            assert_eq!(pair.stands(&grants).await.unwrap(), stands);
        }
        let mut gone = MockTransaction::new();
        gone.expect_lock_family().once().returning(|_| Ok(None));
        assert!(!pair.stands(&gone).await.unwrap());
    }
}
