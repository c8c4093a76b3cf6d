//! Codes, refresh tokens and connections.

use chrono::TimeDelta;
use futures_util::future::join;
use kernel::{Randomness, SellerId};
use oauth::{ClientId, CodeChallenge, Credential, CredentialKind, FamilyId, NewConsent, ScopeSet, TokenKey};
use usecases::{
    Failure, Transaction, Work,
    refresh_tokens::refresh_tokens,
    token_pair::{Granted, Lifetimes, TokenPair},
    transact,
};

use super::fixture::{Fixture, Ids, application, begin, id, seller};

/// The example of RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

const LIFETIMES: Lifetimes = Lifetimes {
    access: TimeDelta::hours(12),
    refresh: TimeDelta::days(90),
};

/// A consent, and the code that comes of it.
async fn consented(fixture: &Fixture, seller: SellerId, client_id: ClientId) -> TokenKey {
    let family = FamilyId::from(id());
    let code = Credential::from_random(CredentialKind::AuthorizationCode, family, &Ids.secret());
    let tx = begin(fixture).await;
    let consent = NewConsent {
        family,
        seller,
        client_id,
        scopes: ScopeSet::all(),
        code: code.key().hash,
        redirect_uri: "https://example.com/back".to_owned(),
        challenge: CodeChallenge::new(CHALLENGE.to_owned()).unwrap(),
        expires_at: tx.now() + TimeDelta::minutes(1),
    };
    tx.add_consent(consent).await.unwrap();
    tx.commit().await.unwrap();
    code.key()
}

/// Exchanges a code without looking at it; the pair.
async fn exchanged(fixture: &Fixture, code: TokenKey) -> TokenPair {
    let pair = TokenPair::new(&Ids, code.family);
    let tx = begin(fixture).await;
    let (_, stored) = tx.lock_code(code).await.unwrap().unwrap();
    assert_eq!(stored.unwrap().used_at, None);
    let new = oauth::NewPair {
        scopes: ScopeSet::all(),
        access: pair.access.key().hash,
        access_expires_at: tx.now() + LIFETIMES.access,
        refresh: pair.refresh.key().hash,
        refresh_expires_at: tx.now() + LIFETIMES.refresh,
    };
    tx.use_code(code, new).await.unwrap();
    tx.commit().await.unwrap();
    pair
}

struct Refresh(TokenKey, ClientId, TokenPair);

#[async_trait::async_trait]
impl Work for Refresh {
    type Done = Granted;
    type Error = Failure<oauth::GrantRefusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Granted, Self::Error> {
        refresh_tokens(tx, self.0, self.1, &self.2, LIFETIMES, tx.now()).await
    }
}

async fn lives(fixture: &Fixture, pair: &TokenPair) -> bool {
    fixture.gate().admit(pair.access.key()).await.unwrap().is_some()
}

/// A refresh token gives a pair once; used again it ends the family, with all that came of it.
#[tokio::test]
async fn a_refresh_token_gives_one_pair() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, super::fixture::seller(fixture).await).await;
    let first = exchanged(fixture, consented(fixture, seller, client_id).await).await;
    assert!(lives(fixture, &first).await);
    let units = fixture.units();
    let refresh = || {
        Refresh(
            first.refresh.key(),
            client_id,
            TokenPair::new(&Ids, first.access.key().family),
        )
    };
    let second = refresh();
    assert!(matches!(
        transact(units.as_ref(), &second).await,
        Ok(Granted::Pair(_))
    ));
    assert!(lives(fixture, &first).await && lives(fixture, &second.2).await);
    let tx = begin(fixture).await;
    assert!(second.2.stands(&*tx).await.unwrap());
    drop(tx);
    let third = refresh();
    assert!(matches!(
        transact(units.as_ref(), &third).await,
        Ok(Granted::FamilyEnded)
    ));
    for pair in [&first, &second.2, &third.2] {
        assert!(!lives(fixture, pair).await);
    }
}

/// Of two at once, one gets the pair, and the other one finds the token used.
#[tokio::test]
async fn a_second_use_waits_for_the_first() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, super::fixture::seller(fixture).await).await;
    let first = exchanged(fixture, consented(fixture, seller, client_id).await).await;
    let (units, family) = (fixture.units(), first.access.key().family);
    let refresh = || Refresh(first.refresh.key(), client_id, TokenPair::new(&Ids, family));
    let (one, other) = (refresh(), refresh());
    let (one, other) = join(transact(units.as_ref(), &one), transact(units.as_ref(), &other)).await;
    one_has_it(&[one.unwrap(), other.unwrap()]);
}

fn one_has_it(granted: &[Granted]) {
    assert!(granted.contains(&Granted::FamilyEnded), "{granted:?}");
    assert!(
        granted.iter().any(|granted| matches!(granted, Granted::Pair(_))),
        "{granted:?}"
    );
}

/// Disconnecting ends what was granted under the connection, used or not; a new consent begins a new one.
#[tokio::test]
async fn a_connections_end_is_its_families_end() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, super::fixture::seller(fixture).await).await;
    let pair = exchanged(fixture, consented(fixture, seller, client_id).await).await;
    let unused = consented(fixture, seller, client_id).await;
    let tx = begin(fixture).await;
    assert!(tx.disconnect(seller, client_id).await.unwrap());
    assert!(!tx.disconnect(seller, client_id).await.unwrap());
    tx.commit().await.unwrap();
    assert!(!lives(fixture, &pair).await);
    let tx = begin(fixture).await;
    for key in [unused, pair.refresh.key()] {
        let family = tx.lock_family(key.family).await.unwrap().unwrap();
        assert!(family.standing.disconnected && family.standing.issuable().is_none());
    }
    drop(tx);
    let again = exchanged(fixture, consented(fixture, seller, client_id).await).await;
    assert!(lives(fixture, &again).await);
}
