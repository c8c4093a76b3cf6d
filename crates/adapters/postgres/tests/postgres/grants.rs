//! Consents, codes and refresh tokens as they are kept, and the connections that they hang on.

use chrono::TimeDelta;
use kernel::{Change, StoreError};
use oauth::{
    Application, ApplicationStatus, Code, Consent, FamilyKind, RefreshToken, Scope, Standing, TokenKey,
    Viewer,
};

use crate::{
    consenting::{Parties, REDIRECT, challenge, hash, new_pair, rotate},
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
    let other = TokenKey { hash: hash(), ..at };
    let found = tx.lock_code(at).await.unwrap();
    assert_eq!(found, Some((family, Some(code))));
    assert_eq!(tx.lock_code(other).await.unwrap(), Some((family, None)));
    assert_eq!(tx.lock_refresh_token(at).await.unwrap(), Some((family, None)));
    let nobodys = TokenKey {
        family: id().into(),
        ..at
    };
    assert_eq!(tx.lock_code(nobodys).await.unwrap(), None);
    assert_eq!(tx.lock_refresh_token(nobodys).await.unwrap(), None);
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
    let (_, stored) = tx.lock_code(code).await.unwrap().unwrap();
    assert!(stored.unwrap().used_at.is_some());
    let of = |hash| TokenKey { hash, ..code };
    let token = RefreshToken {
        scopes: narrow.scopes,
        expires_at: narrow.refresh_expires_at,
        used_at: None,
    };
    let (_, stored) = tx.lock_refresh_token(of(narrow.refresh)).await.unwrap().unwrap();
    assert_eq!(stored, Some(token));
    assert!(tx.has_access_token(of(narrow.access)).await.unwrap());
    assert!(!tx.has_access_token(of(narrow.refresh)).await.unwrap());
    let next = new_pair(only(Scope::OffersRead), now);
    tx.use_refresh_token(of(narrow.refresh), next).await.unwrap();
    let (_, used) = tx.lock_refresh_token(of(narrow.refresh)).await.unwrap().unwrap();
    assert!(used.unwrap().used_at.is_some());
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
async fn an_access_token_can_be_ended_alone() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    tx.lock_family(pair.access.family).await.unwrap();
    let other = TokenKey {
        hash: hash(),
        ..pair.access
    };
    for (token, ended) in [(pair.access, true), (pair.access, false), (other, false)] {
        assert_eq!(tx.revoke_access_token(token).await.unwrap(), ended);
    }
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
        named(tx.lock_refresh_token(pair.refresh).await.unwrap_err()),
        ("refresh_tokens", pair.refresh.family.to_string())
    );
    assert_eq!(
        named(tx.lock_code(code).await.unwrap_err()),
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
