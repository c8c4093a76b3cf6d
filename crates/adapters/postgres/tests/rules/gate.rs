//! The gate.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Randomness, SellerId};
use oauth::{
    ApplicationStatus, BearerToken, ClientId, FamilyId, FamilyKind, Grant, NewToken, ScopeSet, TokenKey,
    TokenKind,
};

use super::fixture::{Fixture, Ids, LIMIT, application, begin, id, seller};

async fn issued(fixture: &Fixture, seller: SellerId, client_id: ClientId) -> TokenKey {
    let family = FamilyId::from(id());
    let token = BearerToken::from_random(TokenKind::Access, family, &Ids.secret());
    let tx = begin(fixture).await;
    let new = NewToken {
        family,
        kind: FamilyKind::ClientCredentials,
        grant: Grant {
            seller,
            client_id,
            scopes: ScopeSet::all(),
        },
        hash: token.key().hash,
        expires_at: Some(tx.now() + TimeDelta::hours(12)),
    };
    tx.issue_token(new).await.unwrap();
    tx.commit().await.unwrap();
    token.key()
}

async fn lives(fixture: &Fixture, token: TokenKey) -> bool {
    fixture.gate().admit(token).await.unwrap().is_some()
}

/// Places of an application rise by one from 1, whichever of its tokens is shown, and begin anew with the next minute. A
/// token that nobody has is counted for nobody.
#[tokio::test]
async fn each_request_has_its_own_place_in_the_minute() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, seller).await;
    let tokens = [
        issued(fixture, seller, client_id).await,
        issued(fixture, seller, client_id).await,
    ];
    let gate = fixture.gate();
    let all = join_all((0..10).map(|n| gate.admit(tokens[n % 2]))).await;
    let admitted: Vec<_> = all
        .into_iter()
        .map(|admitted| admitted.unwrap().unwrap())
        .collect();
    let places: BTreeSet<_> = admitted.iter().map(|admission| admission.quota.place).collect();
    assert!(places.iter().copied().eq(1..=10), "{places:?}");
    assert!(admitted.iter().all(|admission| admission.quota.limit == LIMIT));
    assert_eq!(admitted[0].principal.client_id, client_id);
    let unknown = TokenKey {
        family: id().into(),
        ..tokens[0]
    };
    assert!(!lives(fixture, unknown).await);
    assert_eq!(gate.admit(tokens[0]).await.unwrap().unwrap().quota.place, 11);
    fixture.advance(TimeDelta::minutes(1)).await;
    assert_eq!(gate.admit(tokens[0]).await.unwrap().unwrap().quota.place, 1);
}

/// The next request hears of it: a token's own end, its time's, its family's, its application's, its account's.
#[tokio::test]
async fn a_token_dies_with_whatever_it_hangs_on() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, seller).await;
    let token = issued(fixture, seller, client_id).await;
    let tx = begin(fixture).await;
    assert!(tx.revoke_access_token(token).await.unwrap());
    assert!(lives(fixture, token).await, "nothing was committed");
    tx.commit().await.unwrap();
    let tx = begin(fixture).await;
    assert!(
        !tx.revoke_access_token(token).await.unwrap(),
        "it was ended before"
    );
    tx.commit().await.unwrap();
    assert!(!lives(fixture, token).await);
    let token = issued(fixture, seller, client_id).await;
    let tx = begin(fixture).await;
    tx.lock_family(token.family).await.unwrap().unwrap();
    tx.revoke_family(token.family).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!lives(fixture, token).await);
    let token = issued(fixture, seller, client_id).await;
    let steps: [(fn(_) -> _, bool); 2] = [
        (ApplicationStatus::suspend, false),
        (ApplicationStatus::reinstate, true),
    ];
    for (step, alive) in steps {
        let tx = begin(fixture).await;
        let application = tx.lock_application(client_id).await.unwrap().unwrap();
        tx.save_application(application.moved(step).unwrap())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(lives(fixture, token).await, alive);
    }
    fixture.advance(TimeDelta::hours(12)).await;
    assert!(!lives(fixture, token).await);
    let token = issued(fixture, seller, client_id).await;
    let tx = begin(fixture).await;
    assert!(tx.close_seller(seller, tx.now()).await.unwrap());
    tx.commit().await.unwrap();
    assert!(!lives(fixture, token).await);
}
