//! Connections: what hangs on them, and what goes with them.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::Change;
use oauth::{Application, GrantRefusal, NewConsent, Scope, ScopeSet, TokenKind};
use uuid::Uuid;

use crate::{
    consenting::{Parties, exchange, keys, new_pair, rotate},
    support::{Fixture, id, instant, only},
};

#[tokio::test]
async fn a_token_of_a_consent_lives_by_its_connection_and_has_the_scopes_of_its_pair() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let wide = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    let narrow = new_pair(only(Scope::OffersRead), tx.now());
    tx.lock_family(wide.refresh.family).await.unwrap();
    tx.use_refresh_token(wide.refresh, narrow).await.unwrap();
    tx.commit().await.unwrap();
    let narrow = keys(wide.refresh.family, &narrow).access;
    let gates = [(), ()].map(|()| fixture.another().gate());
    let principals = async |token| {
        let admitted = join_all(gates.iter().map(|gate| gate.admit(token))).await;
        admitted
            .into_iter()
            .map(|admission| admission.unwrap().map(|admission| admission.principal))
            .collect::<Vec<_>>()
    };
    for (token, scopes) in [
        (wide.access, parties.application.scopes),
        (narrow, only(Scope::OffersRead)),
    ] {
        for principal in principals(token).await {
            let principal = principal.unwrap();
            assert_eq!(
                (
                    principal.seller,
                    principal.client_id,
                    principal.scopes,
                    principal.kind
                ),
                (
                    parties.seller.id,
                    parties.application.client_id,
                    scopes,
                    TokenKind::Access
                )
            );
        }
    }
    parties.disconnect(&fixture).await;
    assert_eq!(principals(wide.access).await, [None, None]);
    let after = parties.pair(&fixture).await;
    assert_eq!(principals(narrow).await, [None, None]);
    assert!(principals(after.access).await.iter().all(Option::is_some));
    fixture.tamper("delete from connections").await;
    assert_eq!(
        principals(after.access).await,
        [None, None],
        "no connection is none"
    );
}

#[tokio::test]
async fn a_family_without_a_connection_is_none_that_can_be_disconnected() {
    let fixture = Fixture::new().await;
    let (seller, application, token) = fixture.caller().await;
    let tx = fixture.begin().await;
    assert!(!tx.disconnect(seller.id, application.client_id).await.unwrap());
    let family = tx.lock_family(token.family).await.unwrap().unwrap();
    assert!(!family.standing.disconnected);
    assert_eq!(family.standing.issuable(), Some(application.scopes));
}

#[tokio::test]
async fn a_new_consent_after_a_disconnection_brings_back_nothing_of_before() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let parties = Parties::new(&fixture).await;
    let (before, unused) = (parties.pair(&fixture).await, parties.code(&fixture).await);
    parties.disconnect(&fixture).await;
    let tx = fixture.begin().await;
    assert!(
        !tx.disconnect(parties.seller.id, parties.application.client_id)
            .await
            .unwrap(),
        "it is ended already"
    );
    drop(tx);
    clock.advance(TimeDelta::minutes(1)).await;
    let after = parties.pair(&fixture).await;
    let gate = fixture.database.gate();
    assert!(gate.admit(before.access).await.unwrap().is_none());
    assert!(gate.admit(after.access).await.unwrap().is_some());
    let tx = fixture.begin().await;
    let ended = Some(GrantRefusal::Ended);
    assert_eq!(
        exchange(&*tx, &parties, unused).await.unwrap().unwrap_err(),
        ended
    );
    assert_eq!(
        rotate(&*tx, &parties, before.refresh).await.unwrap().unwrap_err(),
        ended
    );
    drop(tx);
    let [connection] = &fixture
        .database
        .grants()
        .connections(parties.seller.id)
        .await
        .unwrap()[..]
    else {
        panic!("one is connected")
    };
    assert_eq!(connection.connected_at, instant() + TimeDelta::minutes(1));
}

#[tokio::test]
async fn connections_are_those_of_which_something_can_still_be_used() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let parties = Parties::new(&fixture).await;
    let (seller, application) = (&parties.seller, &parties.application);
    let grants = fixture.database.grants();
    let own = fixture.application(seller.id).await;
    fixture.token(&own).await;
    assert_eq!(
        grants.connections(seller.id).await.unwrap(),
        [],
        "an own token is no connection"
    );

    let wide: ScopeSet = [Scope::OffersRead, Scope::OrdersRead].into_iter().collect();
    for scopes in [only(Scope::OffersRead), wide] {
        let tx = fixture.begin().await;
        let consent = NewConsent {
            scopes,
            ..parties.consent(tx.now())
        };
        tx.add_consent(consent).await.unwrap();
        tx.commit().await.unwrap();
    }
    let narrowed = Application {
        scopes: [Scope::OrdersRead, Scope::Messaging].into_iter().collect(),
        ..application.clone()
    };
    let tx = fixture.begin().await;
    tx.save_application(Change::of_existing(narrowed, Vec::new()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let [connection] = &grants.connections(seller.id).await.unwrap()[..] else {
        panic!("one is connected")
    };
    let owner = fixture
        .database
        .sellers()
        .seller(application.owner)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            connection.client_id,
            &connection.name,
            connection.owner,
            &connection.owner_name
        ),
        (application.client_id, &application.name, owner.id, &owner.name)
    );
    assert_eq!(connection.documentation_url, application.documentation_url);
    assert_eq!(connection.scopes, only(Scope::OrdersRead));
    assert_eq!((connection.connected_at, connection.used_at), (instant(), None));

    let is_connected = async || !grants.connections(seller.id).await.unwrap().is_empty();
    clock.advance(TimeDelta::minutes(10)).await;
    assert!(!is_connected().await, "the codes have expired");
    let pair = parties.pair(&fixture).await;
    assert!(is_connected().await);
    let tx = fixture.begin().await;
    tx.revoke_family(pair.access.family).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!is_connected().await, "the family is revoked");
    parties.pair(&fixture).await;
    let end = instant() + TimeDelta::minutes(10) + TimeDelta::days(30);
    clock.freeze(end - TimeDelta::microseconds(1)).await;
    assert!(is_connected().await, "the refresh token is left");
    clock.freeze(end).await;
    assert!(!is_connected().await);
    parties.pair(&fixture).await;
    assert!(is_connected().await);
    parties.disconnect(&fixture).await;
    assert!(!is_connected().await);
    parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    assert!(tx.delete_application(application.client_id).await.unwrap());
    tx.commit().await.unwrap();
    assert!(!is_connected().await, "the application is deleted");
}

#[tokio::test]
async fn disconnecting_ends_the_subscriptions_of_the_pair_alone() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let other = Parties::new(&fixture).await;
    parties.code(&fixture).await;
    let subscribe = async |seller: Uuid, client: Uuid, leased: bool| {
        let subscription = id();
        fixture
            .tamper(&format!(
                "insert into subscriptions (seller_id, id, client_id, created_at, wake_at, fence, leased, active, url, events, secret) \
                   values ('{seller}', '{subscription}', '{client}', api_now(), api_now(), \
                     case when {leased} then gen_random_uuid() end, {leased}, true, 'https://a.example', '{{order.paid}}', ''); \
                 insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, event, body) \
                   select '{seller}', '{subscription}', gen_random_uuid(), api_now(), case when n < 3 then api_now() end, n, \
                     'order.paid', '' from generate_series(1, 3) n"
            ))
            .await;
        subscription
    };
    let (seller, client) = (parties.seller.id.uuid(), parties.application.client_id.uuid());
    let theirs = [
        subscribe(seller, client, false).await,
        subscribe(seller, client, true).await,
    ];
    subscribe(seller, other.application.client_id.uuid(), true).await;
    let free = subscribe(other.seller.id.uuid(), client, false).await;
    parties.disconnect(&fixture).await;
    let rows = fixture
        .place
        .connect()
        .await
        .query(
            "select s.id, s.active, s.leased, s.wake_at is null and s.fence is null, count(d.due_at) from subscriptions s \
             join deliveries d on d.seller_id = s.seller_id and d.subscription_id = s.id group by s.seller_id, s.id order by s.id",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let ended = theirs.contains(&row.get(0));
        // One that a worker holds stays with it until it has recorded what runs.
        let asleep = row.get::<_, Uuid>(0) == theirs[0];
        let found: (bool, bool, i64) = (row.get(1), row.get(3), row.get(4));
        assert_eq!(found, (!ended, asleep, if ended { 0 } else { 2 }));
        assert_eq!(row.get::<_, bool>(2), !asleep && row.get::<_, Uuid>(0) != free);
    }
}
