//! Consents, codes and refresh tokens as they are kept, and the connections that they hang on.

use chrono::TimeDelta;
use kernel::{Change, StoreError};
use oauth::{
    Application, ApplicationStatus, Code, Consent, FamilyKind, GrantRefusal, RefreshToken, Scope, ScopeSet,
    Standing, TokenKey, Viewer,
};

use crate::{
    consenting::{Parties, REDIRECT, challenge, exchange, hash, new_pair, rotate},
    support::{Fixture, id, instant, key, new_token, only},
};

#[tokio::test]
async fn a_consent_is_a_family_with_a_code_and_no_token() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let tx = fixture.begin().await;
    let consent = parties.consent(tx.now());
    let at = TokenKey {
        family: consent.family,
        hash: consent.code,
    };
    tx.add_consent(consent.clone()).await.unwrap();
    tx.commit().await.unwrap();
    let tx = fixture.begin().await;
    let family = tx.lock_family(consent.family).await.unwrap().unwrap();
    assert_eq!(
        (family.seller, family.client_id, family.scopes),
        (consent.seller, consent.client_id, consent.scopes)
    );
    let sound = Standing {
        revoked: false,
        disconnected: false,
        closed: false,
        application: Some((ApplicationStatus::Active, parties.application.scopes)),
    };
    assert_eq!(family.standing, sound);
    let code = Code {
        redirect_uri: REDIRECT.to_owned(),
        challenge: challenge(),
        expires_at: consent.expires_at,
        used_at: None,
    };
    assert_eq!(tx.code(at).await.unwrap(), Some(code));
    assert_eq!(tx.code(TokenKey { hash: hash(), ..at }).await.unwrap(), None);
    assert_eq!(tx.refresh_token(at).await.unwrap(), None);
    assert!(!tx.has_access_token(at).await.unwrap());
    assert_eq!(tx.lock_family(id().into()).await.unwrap(), None);
    assert_eq!(
        fixture.database.grants().holder(at).await.unwrap(),
        Some(consent.client_id)
    );
}

#[tokio::test]
async fn what_is_used_gives_one_pair_and_cannot_be_used_again() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let code = parties.code(&fixture).await;
    let tx = fixture.begin().await;
    let now = tx.now();
    let narrow = new_pair(only(Scope::OffersRead), now);
    tx.lock_family(code.family).await.unwrap();
    tx.use_code(code, narrow).await.unwrap();
    assert!(tx.code(code).await.unwrap().unwrap().used_at.is_some());
    let of = |hash| TokenKey { hash, ..code };
    let token = RefreshToken {
        scopes: narrow.scopes,
        expires_at: narrow.refresh_expires_at,
        used_at: None,
    };
    assert_eq!(tx.refresh_token(of(narrow.refresh)).await.unwrap(), Some(token));
    assert!(tx.has_access_token(of(narrow.access)).await.unwrap());
    assert!(!tx.has_access_token(of(narrow.refresh)).await.unwrap());
    let next = new_pair(only(Scope::OffersRead), now);
    tx.use_refresh_token(of(narrow.refresh), next).await.unwrap();
    let used = tx.refresh_token(of(narrow.refresh)).await.unwrap().unwrap();
    assert!(used.used_at.is_some());
    tx.commit().await.unwrap();

    let grants = fixture.database.grants();
    for known in [code, of(narrow.refresh), of(next.refresh)] {
        assert_eq!(
            grants.holder(known).await.unwrap(),
            Some(parties.application.client_id)
        );
    }
    for unknown in [
        of(narrow.access),
        of(hash()),
        TokenKey {
            family: id().into(),
            ..code
        },
    ] {
        assert_eq!(grants.holder(unknown).await.unwrap(), None);
    }
    let tx = fixture.begin().await;
    let again = tx.use_code(code, new_pair(narrow.scopes, now)).await;
    assert!(matches!(again, Err(StoreError::Unexpected(_))));
    let tx = fixture.begin().await;
    let again = tx
        .use_refresh_token(of(narrow.refresh), new_pair(narrow.scopes, now))
        .await;
    assert!(matches!(again, Err(StoreError::Unexpected(_))));
}

#[tokio::test]
async fn a_family_stands_as_everything_that_it_hangs_on_does() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let code = parties.code(&fixture).await;
    let standing = async || {
        let tx = fixture.begin().await;
        tx.lock_family(code.family).await.unwrap().unwrap().standing
    };
    let tx = fixture.begin().await;
    let narrow = Application {
        status: ApplicationStatus::Suspended,
        scopes: only(Scope::Messaging),
        ..parties.application.clone()
    };
    tx.save_application(Change::of_existing(narrow, Vec::new()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let suspended = Some((ApplicationStatus::Suspended, only(Scope::Messaging)));
    assert_eq!(standing().await.application, suspended);
    let tx = fixture.begin().await;
    assert!(
        tx.delete_application(parties.application.client_id)
            .await
            .unwrap()
    );
    tx.close_seller(parties.seller.id, tx.now()).await.unwrap();
    tx.revoke_family(code.family).await.unwrap();
    tx.commit().await.unwrap();
    let gone = Standing {
        revoked: true,
        disconnected: false,
        closed: true,
        application: None,
    };
    assert_eq!(standing().await, gone);
    parties.disconnect(&fixture).await;
    assert!(standing().await.disconnected);
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
async fn an_access_token_can_be_ended_alone() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    tx.lock_family(pair.access.family).await.unwrap();
    tx.revoke_access_token(pair.access).await.unwrap();
    tx.revoke_access_token(TokenKey {
        hash: hash(),
        ..pair.access
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let gate = fixture.database.gate();
    assert!(gate.admit(pair.access).await.unwrap().is_none());
    let tx = fixture.begin().await;
    assert!(
        tx.has_access_token(pair.access).await.unwrap(),
        "it is there, but dead"
    );
    let next = rotate(&*tx, &parties, pair.refresh).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    assert!(gate.admit(next.access).await.unwrap().is_some());
    let tx = fixture.begin().await;
    tx.revoke_family(next.access.family).await.unwrap();
    tx.commit().await.unwrap();
    assert!(gate.admit(next.access).await.unwrap().is_none());
    let nobody = fixture.begin().await.revoke_family(id().into()).await;
    assert!(matches!(nobody, Err(StoreError::Unexpected(_))));
}

#[tokio::test]
async fn a_screen_belongs_to_its_first_viewer_until_it_is_given_up() {
    let fixture = Fixture::new().await;
    let viewer = || Viewer {
        session: hash(),
        seller: id().into(),
    };
    let (first, second, screen) = (viewer(), viewer(), id().into());
    let expires_at = instant() + TimeDelta::minutes(10);
    let lock = async |viewer| {
        let tx = fixture.begin().await;
        let consent = tx
            .lock_consent(screen, viewer, expires_at + TimeDelta::hours(1))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        consent
    };
    let tx = fixture.begin().await;
    let open = Consent {
        id: screen,
        viewer: first,
        expires_at,
        decided_at: None,
    };
    assert_eq!(tx.lock_consent(screen, first, expires_at).await.unwrap(), open);
    tx.commit().await.unwrap();
    assert_eq!(lock(second).await, open, "whoever comes later finds it as it is");
    let release = async |viewer| {
        let tx = fixture.begin().await;
        let released = tx.release_consent(screen, viewer).await.unwrap();
        tx.commit().await.unwrap();
        released
    };
    assert!(!release(second).await);
    assert!(release(first).await);
    assert!(!release(first).await);
    let taken = lock(second).await;
    assert_eq!(taken.viewer, second);
    let decided = Consent {
        decided_at: Some(instant()),
        ..taken
    };
    let tx = fixture.begin().await;
    tx.save_consent(decided).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(lock(second).await, decided);
    assert!(!release(second).await, "a decided one stays");
    let twice = fixture.begin().await.save_consent(decided).await;
    assert!(matches!(twice, Err(StoreError::Unexpected(_))));
    let undecided = fixture.begin().await.save_consent(taken).await;
    assert!(matches!(undecided, Err(StoreError::Unexpected(_))));
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
        let consent = oauth::NewConsent {
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
    let subscribe = async |seller: uuid::Uuid, client: uuid::Uuid, leased: bool| {
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
    subscribe(other.seller.id.uuid(), client, false).await;
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
        let found: (bool, bool, i64) = (row.get(1), row.get(3), row.get(4));
        assert_eq!(found, (!ended, ended, if ended { 0 } else { 2 }));
        assert!(!ended || !row.get::<_, bool>(2));
    }
}

#[tokio::test]
async fn rows_that_cannot_be_are_named() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    let code = parties.code(&fixture).await;
    let named = |error: StoreError| match error {
        StoreError::Corrupt { row, .. } => (row.table, row.id),
        other => panic!("{other}"),
    };
    fixture
        .tamper(
            "update refresh_tokens set scopes = 1 << 20; \
             alter table authorization_codes drop constraint authorization_codes_code_challenge_check; \
             update authorization_codes set code_challenge = 'short'",
        )
        .await;
    let tx = fixture.begin().await;
    assert_eq!(
        named(tx.refresh_token(pair.refresh).await.unwrap_err()),
        ("refresh_tokens", pair.refresh.family.to_string())
    );
    assert_eq!(
        named(tx.code(code).await.unwrap_err()),
        ("authorization_codes", code.family.to_string())
    );
    drop(tx);
    fixture.tamper("update applications set scopes = 1 << 20").await;
    let application = ("applications", parties.application.client_id.to_string());
    let tx = fixture.begin().await;
    assert_eq!(named(tx.lock_family(code.family).await.unwrap_err()), application);
    drop(tx);
    fixture.tamper("update families set scopes = 1 << 20").await;
    let tx = fixture.begin().await;
    assert_eq!(
        named(tx.lock_family(code.family).await.unwrap_err()),
        ("families", code.family.to_string())
    );
    let connections = fixture.database.grants().connections(parties.seller.id).await;
    assert_eq!(
        named(connections.unwrap_err()),
        ("connections", parties.application.client_id.to_string())
    );
}

#[tokio::test]
async fn a_family_has_a_generation_exactly_when_it_was_consented_to() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let loose = new_token(
        &parties.application,
        FamilyKind::AuthorizationCode,
        Some(instant() + TimeDelta::hours(1)),
    );
    let tx = fixture.begin().await;
    assert!(matches!(
        tx.issue_token(loose).await,
        Err(StoreError::Unexpected(_))
    ));
    drop(tx);
    assert!(
        fixture
            .database
            .gate()
            .admit(key(&loose))
            .await
            .unwrap()
            .is_none()
    );
}
