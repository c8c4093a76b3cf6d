//! A family of tokens over mocked transactions: changes take effect when they are committed.

use std::sync::{Arc, Mutex};

use actix_web::test::TestRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use kernel::{CommitError, StoreError};
use oauth::{
    Application, ApplicationStatus, ClientSecret, ClientType, Code, CodeChallenge, Credential,
    CredentialKind, Family, FamilyId, NewPair, Purpose, RefreshToken, ScopeSet, Standing, TokenKey,
};
use usecases::MockTransaction;
use uuid::Uuid;

use super::fixture::{Answered, Fixture, count, now, unavailable};

pub(super) const CLIENT: &str = "psa_0000000000000000000000000000000b";

pub(super) fn secret() -> ClientSecret {
    ClientSecret::from_random(&[9; 32])
}

pub(super) fn application() -> Application {
    Application {
        client_id: CLIENT.parse().unwrap(),
        owner: Uuid::from_u128(0xa).into(),
        name: "Kettle Sync".to_owned(),
        description: None,
        documentation_url: None,
        purpose: Purpose::OwnUse,
        client_type: ClientType::Confidential,
        redirect_uris: Vec::new(),
        scopes: ScopeSet::parse("offers:read orders:read").unwrap(),
        status: ApplicationStatus::Active,
        rate_limit: None,
        built_in: false,
        secret: Some(secret().hash()),
        created_at: now(),
    }
}

/// Limits that are never reached, and this application for every client id.
pub(super) fn knowing(application: Application) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Ok(count(1)));
    fixture
        .applications
        .expect_client()
        .returning(move |asked| Ok((asked == application.client_id).then(|| application.clone())));
    fixture
}

fn post() -> TestRequest {
    TestRequest::post().uri("/oauth/token")
}

pub(super) fn form(body: &str) -> TestRequest {
    let kind = ("content-type", "application/x-www-form-urlencoded");
    post().insert_header(kind).set_payload(body.to_owned())
}

pub(super) fn basic(client: &str, secret: &str) -> (&'static str, String) {
    (
        "authorization",
        format!("Basic {}", STANDARD.encode(format!("{client}:{secret}"))),
    )
}

pub(super) fn by_basic(body: &str) -> TestRequest {
    form(body).insert_header(basic(CLIENT, secret().reveal()))
}

pub(super) fn is(answered: &Answered, status: u16, error: &str) {
    assert_eq!(
        answered.oauth_error(),
        (status, error.to_owned()),
        "{}",
        answered.text()
    );
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("pragma"), Some("no-cache"));
    assert_eq!(answered.header("x-ratelimit-limit"), None);
}

pub(super) const BACK: &str = "https://app.example/cb?from=shop";
/// The verifier of RFC 7636, Appendix B.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// The new access and refresh tokens of the family, as made from the fixture's randomness.
pub(super) const NEW_ACCESS: &str = "ps_at_AAAAAAAAAAAAAAAAAAAACAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

pub(super) fn family_id() -> FamilyId {
    Uuid::from_u128(8).into()
}

pub(super) fn code() -> Credential {
    Credential::from_random(CredentialKind::AuthorizationCode, family_id(), &[1; 32])
}

pub(super) fn refresh_token() -> Credential {
    Credential::from_random(CredentialKind::RefreshToken, family_id(), &[2; 32])
}

/// How a COMMIT ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Commit {
    Done,
    /// The answer is lost; the transaction is committed.
    LostDone,
    /// The answer is lost; the transaction is rolled back.
    LostUndone,
    /// It is rolled back because another transaction won.
    Beaten,
    /// It is rolled back because the database became unavailable.
    Gone,
}

/// The committed state.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) family: Option<Family>,
    pub(super) code: Option<Code>,
    pub(super) refresh: Option<RefreshToken>,
    pub(super) pairs: Vec<NewPair>,
    pub(super) ended: Vec<TokenKey>,
}

#[derive(Clone, Copy)]
enum Change {
    UseCode(NewPair),
    UseRefresh(NewPair),
    EndFamily,
    EndAccess(TokenKey),
}

impl Kept {
    fn apply(&mut self, change: Change) {
        match change {
            Change::UseCode(pair) => {
                self.code.as_mut().unwrap().used_at = Some(now());
                self.pairs.push(pair);
            }
            Change::UseRefresh(pair) => {
                self.refresh.as_mut().unwrap().used_at = Some(now());
                self.pairs.push(pair);
            }
            Change::EndFamily => self.family.as_mut().unwrap().standing.revoked = true,
            Change::EndAccess(key) => self.ended.push(key),
        }
    }
}

/// The family of these tests, with a usable code and a usable refresh token.
#[derive(Clone)]
pub(super) struct Grants(Arc<Mutex<Kept>>);

impl Grants {
    pub(super) fn new() -> Self {
        let scopes = ScopeSet::parse("offers:read orders:read").unwrap();
        let family = Family {
            id: family_id(),
            seller: Uuid::from_u128(0xa).into(),
            client_id: CLIENT.parse().unwrap(),
            scopes,
            standing: Standing {
                revoked: false,
                disconnected: false,
                closed: false,
                application: Some((ApplicationStatus::Active, ScopeSet::all())),
            },
        };
        let code = Code {
            redirect_uri: BACK.to_owned(),
            challenge: CodeChallenge::new(CHALLENGE.to_owned()).unwrap(),
            expires_at: now() + TimeDelta::minutes(10),
            used_at: None,
        };
        let refresh = RefreshToken {
            scopes,
            expires_at: now() + TimeDelta::days(90),
            used_at: None,
        };
        Self(Arc::new(Mutex::new(Kept {
            family: Some(family),
            code: Some(code),
            refresh: Some(refresh),
            pairs: Vec::new(),
            ended: Vec::new(),
        })))
    }

    /// The same with a change.
    pub(super) fn with(self, change: impl FnOnce(&mut Kept)) -> Self {
        change(&mut self.0.lock().unwrap());
        self
    }

    /// The state now.
    pub(super) fn kept(&self) -> Kept {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.kept().family.unwrap().standing.revoked
    }

    /// A transaction whose COMMIT ends like this; `None` if it must not be committed.
    pub(super) fn transaction(&self, commit: Option<Commit>) -> MockTransaction {
        let mut transaction = MockTransaction::new();
        transaction.expect_now().returning(now);
        self.reading(&mut transaction);
        let changes = Self::writing(&mut transaction);
        if let Some(commit) = commit {
            let grants = self.clone();
            transaction.expect_commit().once().returning(move || {
                if matches!(commit, Commit::Done | Commit::LostDone) {
                    let mut kept = grants.0.lock().unwrap();
                    changes
                        .lock()
                        .unwrap()
                        .drain(..)
                        .for_each(|change| kept.apply(change));
                }
                match commit {
                    Commit::Done => Ok(()),
                    Commit::LostDone | Commit::LostUndone => Err(CommitError::Unknown(unavailable())),
                    Commit::Beaten => Err(CommitError::RolledBack(StoreError::Retryable("beaten".into()))),
                    Commit::Gone => Err(CommitError::RolledBack(unavailable())),
                }
            });
        }
        transaction
    }

    fn reading(&self, transaction: &mut MockTransaction) {
        let grants = self.clone();
        transaction
            .expect_lock_family()
            .returning(move |id| Ok(grants.kept().family.filter(|family| family.id == id)));
        let grants = self.clone();
        transaction.expect_lock_code().returning(move |key| {
            let kept = grants.kept();
            let stored = kept.code.filter(|_| key == code().key());
            Ok(kept
                .family
                .filter(|family| family.id == key.family)
                .map(|family| (family, stored)))
        });
        let grants = self.clone();
        transaction.expect_lock_refresh_token().returning(move |key| {
            let kept = grants.kept();
            let stored = kept.refresh.filter(|_| key == refresh_token().key());
            Ok(kept
                .family
                .filter(|family| family.id == key.family)
                .map(|family| (family, stored)))
        });
        let grants = self.clone();
        transaction
            .expect_has_access_token()
            .returning(move |key| Ok(grants.kept().pairs.iter().any(|pair| pair.access == key.hash)));
    }

    fn writing(transaction: &mut MockTransaction) -> Arc<Mutex<Vec<Change>>> {
        let changes = Arc::<Mutex<Vec<Change>>>::default();
        let noted = Arc::clone(&changes);
        transaction.expect_use_code().returning(move |_, pair| {
            noted.lock().unwrap().push(Change::UseCode(pair));
            Ok(())
        });
        let noted = Arc::clone(&changes);
        transaction.expect_use_refresh_token().returning(move |_, pair| {
            noted.lock().unwrap().push(Change::UseRefresh(pair));
            Ok(())
        });
        let noted = Arc::clone(&changes);
        transaction.expect_revoke_family().returning(move |_| {
            noted.lock().unwrap().push(Change::EndFamily);
            Ok(())
        });
        let noted = Arc::clone(&changes);
        transaction.expect_revoke_access_token().returning(move |key| {
            noted.lock().unwrap().push(Change::EndAccess(key));
            Ok(true)
        });
        changes
    }

    /// A listener that opens exactly these transactions, in this order.
    pub(super) fn over(&self, commits: &[Option<Commit>]) -> Fixture {
        let transactions = commits.iter().map(|commit| self.transaction(*commit));
        knowing(application()).transactions(transactions.collect())
    }
}

pub(super) fn public_application() -> Application {
    Application {
        client_type: ClientType::Public,
        secret: None,
        ..application()
    }
}

/// Parameters of a valid exchange; `changes` replaces values, and an empty value omits the parameter.
pub(super) fn exchange_with(changes: &[(&str, &str)]) -> String {
    let code = code();
    let fine = [
        ("grant_type", "authorization_code"),
        ("code", code.reveal()),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
    ];
    encoded(&fine, changes)
}

/// The same for a refresh.
pub(super) fn refresh_with(changes: &[(&str, &str)]) -> String {
    let token = refresh_token();
    let fine = [("grant_type", "refresh_token"), ("refresh_token", token.reveal())];
    encoded(&fine, changes)
}

fn encoded(fine: &[(&str, &str)], changes: &[(&str, &str)]) -> String {
    let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
    let kept = fine.iter().filter(|(name, _)| !is_changed(name));
    let pairs = kept.chain(changes).filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(name, value)| {
        let value = value.replace('%', "%25").replace('&', "%26").replace('+', "%2B");
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// An exchange by the confidential client.
pub(super) fn exchange() -> TestRequest {
    by_basic(&exchange_with(&[]))
}

/// A refresh by the confidential client.
pub(super) fn refresh() -> TestRequest {
    by_basic(&refresh_with(&[]))
}

/// A call by a client without a secret.
pub(super) fn by_id(body: &str) -> TestRequest {
    form(&format!("{body}&client_id={CLIENT}"))
}
