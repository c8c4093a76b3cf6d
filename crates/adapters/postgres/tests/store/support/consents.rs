//! Consents, and their codes and token pairs.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    Application, ClientId, CodeChallenge, CodeExchange, CodeVerifier, FamilyId, GrantRefusal, NewConsent,
    NewPair, Presented, ScopeSet, TokenKey, Verdict,
};
use usecases::Transaction;

use super::{Fixture, hash, id};

pub(crate) const REDIRECT: &str = "https://app.example/cb";
/// From RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A seller, and another seller's application that it consents to.
pub(crate) struct Parties {
    pub(crate) seller: SellerId,
    pub(crate) application: Application,
}

impl Parties {
    pub(crate) async fn new(fixture: &Fixture) -> Self {
        let owner = fixture.seller().await;
        Self {
            seller: fixture.seller().await,
            application: fixture.application(owner).await,
        }
    }

    /// The same seller with another application, and the same application with another seller.
    pub(crate) async fn beside(&self, fixture: &Fixture) -> [Self; 2] {
        let another = Self {
            seller: self.seller,
            ..Self::new(fixture).await
        };
        let customer = Self {
            seller: fixture.seller().await,
            application: self.application.clone(),
        };
        [another, customer]
    }

    pub(crate) fn client_id(&self) -> ClientId {
        self.application.client_id
    }

    pub(crate) fn consent(&self, now: DateTime<Utc>) -> NewConsent {
        NewConsent {
            family: FamilyId::from(id()),
            seller: self.seller,
            client_id: self.client_id(),
            scopes: self.application.scopes,
            code: hash(),
            redirect_uri: REDIRECT.to_owned(),
            challenge: CodeChallenge::new(CHALLENGE.to_owned()).unwrap(),
            expires_at: now + TimeDelta::minutes(10),
        }
    }

    /// The code of a committed consent.
    pub(crate) async fn code(&self, fixture: &Fixture) -> TokenKey {
        fixture.tx(async |tx| self.add_consent(tx).await).await
    }

    pub(crate) async fn add_consent(&self, tx: &dyn Transaction) -> TokenKey {
        let consent = self.consent(tx.now());
        let (family, hash) = (consent.family, consent.code);
        tx.add_consent(consent).await.unwrap();
        TokenKey { family, hash }
    }

    /// The committed pair of a code.
    pub(crate) async fn pair(&self, fixture: &Fixture) -> Pair {
        let code = self.code(fixture).await;
        let exchanged = fixture.tx(async |tx| self.exchange(tx, code).await).await;
        exchanged.unwrap().unwrap()
    }

    /// The committed pair that replaces a refresh token.
    pub(crate) async fn rotated(&self, fixture: &Fixture, token: TokenKey) -> Pair {
        let rotated = fixture.tx(async |tx| self.rotate(tx, token).await).await;
        rotated.unwrap().unwrap()
    }

    pub(crate) async fn disconnect(&self, tx: &dyn Transaction) {
        assert!(tx.disconnect(self.seller, self.client_id()).await.unwrap());
    }

    /// What it presents with its code.
    pub(crate) fn presented(&self) -> CodeExchange {
        CodeExchange {
            client_id: self.client_id(),
            redirect_uri: REDIRECT.to_owned(),
            verifier: CodeVerifier::new(VERIFIER.to_owned()).unwrap(),
        }
    }

    /// Exchanges a code as its own client. A replay returns `Err(None)`.
    pub(crate) async fn exchange(&self, tx: &dyn Transaction, code: TokenKey) -> PairResult {
        exchange(tx, &Presented::Code(code, self.presented())).await
    }

    /// Rotates a refresh token as its own client. A replay returns `Err(None)`.
    pub(crate) async fn rotate(&self, tx: &dyn Transaction, token: TokenKey) -> PairResult {
        exchange(tx, &Presented::RefreshToken(token, self.client_id())).await
    }
}

async fn exchange(tx: &dyn Transaction, presented: &Presented) -> PairResult {
    let key = presented.key();
    let (family, stored) = tx.lock_credential(key).await?.unwrap();
    match presented.judge(&family, &stored, tx.now()) {
        Ok(Verdict::Issue(scopes)) => {
            let pair = new_pair(scopes, tx.now());
            tx.use_credential(key, pair).await?;
            Ok(Ok(keys(key.family, &pair)))
        }
        Ok(Verdict::RevokeFamily) => tx.revoke_family(key.family).await.map(|()| Err(None)),
        Err(refusal) => Ok(Err(Some(refusal))),
    }
}

/// The result of a token request: the pair, or the refusal.
pub(crate) type PairResult = Result<Result<Pair, Option<GrantRefusal>>, StoreError>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) access: TokenKey,
    pub(crate) refresh: TokenKey,
}

pub(crate) fn new_pair(scopes: ScopeSet, now: DateTime<Utc>) -> NewPair {
    NewPair {
        scopes,
        access: hash(),
        access_expires_at: now + TimeDelta::hours(1),
        refresh: hash(),
        refresh_expires_at: now + TimeDelta::days(30),
    }
}

pub(crate) fn keys(family: FamilyId, pair: &NewPair) -> Pair {
    let key = |hash| TokenKey { family, hash };
    Pair {
        access: key(pair.access),
        refresh: key(pair.refresh),
    }
}
