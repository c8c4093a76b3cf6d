//! Consents, and what comes of them, for the tests of grants.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::StoreError;
use oauth::{
    Application, Code, CodeChallenge, CodePresented, CodeVerifier, FamilyId, GrantRefusal, NewConsent,
    NewPair, ScopeSet, SecretHash, Seller, TokenKey, Verdict,
};
use tokio_postgres::Client;
use usecases::Transaction;

use crate::support::{Fixture, id, number};

pub(crate) const REDIRECT: &str = "https://app.example/cb";
/// Of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

pub(crate) fn challenge() -> CodeChallenge {
    CodeChallenge::new(CHALLENGE.to_owned()).unwrap()
}

/// A hash that no other call gets.
pub(crate) fn hash() -> SecretHash {
    SecretHash::of(&format!("secret {}", number()))
}

/// A seller, and somebody else's application that it consents to.
pub(crate) struct Parties {
    pub(crate) seller: Seller,
    pub(crate) application: Application,
}

impl Parties {
    pub(crate) async fn new(fixture: &Fixture) -> Self {
        let owner = fixture.seller().await;
        Self {
            seller: fixture.seller().await,
            application: fixture.application(owner.id).await,
        }
    }

    pub(crate) fn consent(&self, now: DateTime<Utc>) -> NewConsent {
        NewConsent {
            family: FamilyId::from(id()),
            seller: self.seller.id,
            client_id: self.application.client_id,
            scopes: self.application.scopes,
            code: hash(),
            redirect_uri: REDIRECT.to_owned(),
            challenge: challenge(),
            expires_at: now + TimeDelta::minutes(10),
        }
    }

    /// The code of a consent that is committed.
    pub(crate) async fn code(&self, fixture: &Fixture) -> TokenKey {
        let tx = fixture.begin().await;
        let consent = self.consent(tx.now());
        let code = code_of(&consent);
        tx.add_consent(consent).await.unwrap();
        tx.commit().await.unwrap();
        code
    }

    /// The pair that a code gave, committed.
    pub(crate) async fn pair(&self, fixture: &Fixture) -> Pair {
        let code = self.code(fixture).await;
        let tx = fixture.begin().await;
        let pair = exchange(&*tx, self, code).await.unwrap();
        tx.commit().await.unwrap();
        pair.unwrap()
    }

    pub(crate) async fn disconnect(&self, fixture: &Fixture) {
        let tx = fixture.begin().await;
        assert!(
            tx.disconnect(self.seller.id, self.application.client_id)
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
    }
}

pub(crate) fn code_of(consent: &NewConsent) -> TokenKey {
    TokenKey {
        family: consent.family,
        hash: consent.code,
    }
}

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

/// What a client gets that is refused: the pair, or why not.
type Got = Result<Result<Pair, Option<GrantRefusal>>, StoreError>;

/// Exchanges a code as its own client. A replay is `Err(None)`.
pub(crate) async fn exchange(tx: &dyn Transaction, parties: &Parties, code: TokenKey) -> Got {
    let (family, stored): (_, Option<Code>) = tx.lock_code(code).await?.unwrap();
    let stored = stored.unwrap();
    let presented = CodePresented {
        client_id: parties.application.client_id,
        redirect_uri: REDIRECT.to_owned(),
        verifier: CodeVerifier::new(VERIFIER.to_owned()).unwrap(),
    };
    match stored.judge(&family, &presented, tx.now()) {
        Verdict::Issue(scopes) => {
            let pair = new_pair(scopes, tx.now());
            tx.use_code(code, pair).await?;
            Ok(Ok(keys(code.family, &pair)))
        }
        Verdict::RevokeFamily => tx.revoke_family(code.family).await.map(|()| Err(None)),
        Verdict::Refuse(refusal) => Ok(Err(Some(refusal))),
    }
}

/// Rotates a refresh token as its own client. A replay is `Err(None)`.
pub(crate) async fn rotate(tx: &dyn Transaction, parties: &Parties, token: TokenKey) -> Got {
    let (family, stored) = tx.lock_refresh_token(token).await?.unwrap();
    let stored = stored.unwrap();
    match stored.judge(&family, parties.application.client_id, tx.now()) {
        Verdict::Issue(scopes) => {
            let pair = new_pair(scopes, tx.now());
            tx.use_refresh_token(token, pair).await?;
            Ok(Ok(keys(token.family, &pair)))
        }
        Verdict::RevokeFamily => tx.revoke_family(token.family).await.map(|()| Err(None)),
        Verdict::Refuse(refusal) => Ok(Err(Some(refusal))),
    }
}

/// Waits until a connection of the adapter's waits for a lock.
pub(crate) async fn somebody_waits(client: &Client) {
    let waiting = "select exists (select from pg_stat_activity where datname = current_database() \
        and application_name = 'seller-api' and wait_event_type = 'Lock')";
    while !client.query_one(waiting, &[]).await.unwrap().get::<_, bool>(0) {
        tokio::task::yield_now().await;
    }
}

/// How an open transaction ends while another one waits for it.
pub(crate) async fn end_once_awaited(client: &Client, tx: Box<dyn Transaction>, commits: bool) {
    somebody_waits(client).await;
    if commits {
        tx.commit().await.unwrap();
    } else {
        drop(tx);
    }
}
