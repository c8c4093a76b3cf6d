//! Sellers, applications, tokens and operators' tokens as they are kept.

use std::num::NonZeroU32;

use chrono::TimeDelta;
use futures_util::{future::join_all, join};
use kernel::{Change, SellerId, StoreError};
use oauth::{
    Application, ApplicationStatus, ClientId, ClientSecret, ClientType, FamilyKind, OperatorToken,
    PasswordHash, Scope,
};

use crate::support::{Fixture, application, id, instant, new_seller, new_token, only};

#[tokio::test]
async fn a_seller_reads_back_and_is_numbered_upwards() {
    let fixture = Fixture::new().await;
    let (first, second) = (fixture.seller().await, fixture.seller().await);
    assert_eq!(first.seller_no, 1);
    assert!(second.seller_no > first.seller_no);
    let sellers = fixture.database.sellers();
    assert_eq!(sellers.seller(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(sellers.seller(SellerId::from(id())).await.unwrap(), None);
    assert_eq!(sellers.sellers(0, 1).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(sellers.sellers(first.seller_no, 10).await.unwrap(), [second]);
}

#[tokio::test]
async fn an_address_is_one_whatever_its_case() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let mut new = new_seller("Shop@Example.com");
    new.password = Some(PasswordHash::new("$argon2id$x".to_owned()));
    tx.add_seller(new).await.unwrap();
    let error = tx.add_seller(new_seller("shop@example.COM")).await.unwrap_err();
    assert_eq!(error.conflict(), Some("sellers_email_key"));
}

#[tokio::test]
async fn closing_keeps_the_first_instant() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let tx = fixture.begin().await;
    assert!(tx.close_seller(seller.id, instant()).await.unwrap());
    assert!(
        tx.close_seller(seller.id, instant() + TimeDelta::hours(1))
            .await
            .unwrap()
    );
    assert!(!tx.close_seller(SellerId::from(id()), instant()).await.unwrap());
    assert_eq!(
        tx.lock_seller(seller.id).await.unwrap().unwrap().closed_at,
        Some(instant())
    );
}

#[tokio::test]
async fn an_application_reads_back_as_it_was_saved() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let before = fixture.application(seller.id).await;
    let applications = fixture.database.applications();
    assert_eq!(
        applications.client(before.client_id).await.unwrap(),
        Some(before.clone())
    );
    let after = Application {
        status: ApplicationStatus::Suspended,
        rate_limit: NonZeroU32::new(10_000_000),
        scopes: only(Scope::OffersRead),
        redirect_uris: Vec::new(),
        description: None,
        client_type: ClientType::Public,
        secret: None,
        ..before
    };
    let tx = fixture.begin().await;
    tx.lock_application(after.client_id).await.unwrap().unwrap();
    tx.save_application(Change::of_existing(after.clone(), Vec::new()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(applications.client(after.client_id).await.unwrap(), Some(after));
}

#[tokio::test]
async fn a_deleted_application_is_gone_and_its_name_stays_taken() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let gone = fixture.application(seller.id).await;
    let tx = fixture.begin().await;
    assert!(tx.delete_application(gone.client_id).await.unwrap());
    assert!(!tx.delete_application(gone.client_id).await.unwrap());
    assert!(tx.lock_application(gone.client_id).await.unwrap().is_none());
    let late = tx
        .save_application(Change::of_existing(gone.clone(), Vec::new()))
        .await;
    assert!(matches!(late, Err(StoreError::Unexpected(_))));
    tx.commit().await.unwrap();
    assert_eq!(
        fixture
            .database
            .applications()
            .client(gone.client_id)
            .await
            .unwrap(),
        None
    );
    let twin = Application {
        name: gone.name.to_uppercase(),
        ..application(seller.id)
    };
    let error = fixture
        .begin()
        .await
        .save_application(Change::made(twin, Vec::new()))
        .await
        .unwrap_err();
    assert_eq!(error.conflict(), Some("applications_name_key"));
}

#[tokio::test]
async fn a_closed_seller_has_no_clients() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller.id).await;
    let tx = fixture.begin().await;
    tx.close_seller(seller.id, tx.now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        fixture
            .database
            .applications()
            .client(application.client_id)
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn a_seller_has_one_built_in_application_whose_name_is_nobody_elses_concern() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.seller().await, fixture.seller().await);
    let tx = fixture.begin().await;
    for owner in [one.id, other.id] {
        tx.save_application(Application::built_in(id().into(), owner, instant()))
            .await
            .unwrap();
    }
    let found = tx.built_in_application(one.id).await.unwrap().unwrap();
    assert!(found.built_in && found.owner == one.id && found.documentation_url.is_none());
    let second = Application::built_in(id().into(), one.id, instant());
    let error = tx.save_application(second).await.unwrap_err();
    assert_eq!(error.conflict(), Some("applications_built_in_key"));
}

#[tokio::test]
async fn personal_tokens_are_counted_while_they_live_and_revoked_once_by_their_owner() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let tx = fixture.begin().await;
    let built_in = Application::built_in(id().into(), seller.id, instant());
    tx.save_application(built_in.clone()).await.unwrap();
    let now = tx.now();
    let endless = new_token(&built_in.after, FamilyKind::Personal, None);
    let ending = new_token(
        &built_in.after,
        FamilyKind::Personal,
        Some(now + TimeDelta::hours(1)),
    );
    for token in [endless, ending] {
        tx.issue_token(token).await.unwrap();
        tx.add_personal_token(seller.id, token.family, "script")
            .await
            .unwrap();
    }
    assert_eq!(tx.count_personal_tokens(seller.id, now).await.unwrap(), 2);
    assert_eq!(
        tx.count_personal_tokens(seller.id, now + TimeDelta::hours(1))
            .await
            .unwrap(),
        1
    );
    assert_eq!(tx.count_personal_tokens(other.id, now).await.unwrap(), 0);
    assert!(!tx.revoke_personal_token(other.id, endless.family).await.unwrap());
    assert!(tx.revoke_personal_token(seller.id, endless.family).await.unwrap());
    assert!(!tx.revoke_personal_token(seller.id, endless.family).await.unwrap());
    assert_eq!(tx.count_personal_tokens(seller.id, now).await.unwrap(), 1);
}

#[tokio::test]
async fn only_a_personal_token_lives_for_ever_and_only_a_personal_one_is_revoked_as_such() {
    let fixture = Fixture::new().await;
    let (seller, application, token) = fixture.caller().await;
    let tx = fixture.begin().await;
    assert!(!tx.revoke_personal_token(seller.id, token.family).await.unwrap());
    let endless = new_token(&application, FamilyKind::ClientCredentials, None);
    assert!(matches!(
        tx.issue_token(endless).await,
        Err(StoreError::Unexpected(_))
    ));
}

#[tokio::test]
async fn operators_tokens_are_found_by_their_hash_until_they_are_revoked() {
    let fixture = Fixture::new().await;
    let tokens = fixture.database.operator_tokens();
    let hash = |n: u8| OperatorToken::from_random(&[n; 32]).hash();
    let (first, second) = (id(), id());
    let tx = fixture.begin().await;
    tx.add_operator_token(first, "one", hash(1)).await.unwrap();
    tx.commit().await.unwrap();
    let tx = fixture.begin().await;
    tx.add_operator_token(second, "two", hash(2)).await.unwrap();
    tx.commit().await.unwrap();
    let tx = fixture.begin().await;
    let twice = tx.add_operator_token(id(), "three", hash(2)).await.unwrap_err();
    assert_eq!(twice.conflict(), Some("operator_tokens_hash_key"));
    drop(tx);
    assert_eq!(tokens.operator(hash(1)).await.unwrap().unwrap().name, "one");
    assert!(tokens.operator(hash(3)).await.unwrap().is_none());
    let tx = fixture.begin().await;
    assert!(tx.revoke_operator_token(first).await.unwrap());
    assert!(!tx.revoke_operator_token(first).await.unwrap());
    tx.commit().await.unwrap();
    assert!(tokens.operator(hash(1)).await.unwrap().is_none());
    let listed = tokens.operator_tokens().await.unwrap();
    assert_eq!(
        listed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [first, second]
    );
    assert!(listed[0].revoked_at.is_some() && listed[1].revoked_at.is_none());
}

#[tokio::test]
async fn an_application_that_cannot_be_is_named() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller.id).await;
    fixture.tamper("update applications set scopes = 1 << 20").await;
    let error = fixture
        .database
        .applications()
        .client(application.client_id)
        .await
        .unwrap_err();
    let StoreError::Corrupt { row, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (row.table, row.id),
        ("applications", application.client_id.to_string())
    );
}

#[tokio::test]
async fn clients_that_authenticate_at_once_are_each_found_as_themselves() {
    let fixture = Fixture::new().await;
    let mut known = Vec::new();
    for _ in 0..6 {
        let seller = fixture.seller().await;
        known.push(fixture.application(seller.id).await);
    }
    let tx = fixture.begin().await;
    assert!(tx.delete_application(known[0].client_id).await.unwrap());
    assert!(tx.close_seller(known[1].owner, tx.now()).await.unwrap());
    tx.commit().await.unwrap();
    let bad = known[2].client_id;
    fixture
        .tamper(&format!(
            "update applications set scopes = 1 << 20 where client_id = '{}'",
            bad.uuid()
        ))
        .await;
    let applications = fixture.another().applications();
    let asked: Vec<_> = known.iter().cycle().take(36).collect();
    let unknown = ClientId::from(id());
    let (nobody, found) = join!(
        applications.client(unknown),
        join_all(
            asked
                .iter()
                .map(|application| applications.client(application.client_id))
        )
    );
    assert_eq!(nobody.unwrap(), None);
    for (n, (application, found)) in asked.into_iter().zip(found).enumerate() {
        match n % 6 {
            0 | 1 => assert_eq!(found.unwrap(), None),
            2 => assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}"),
            _ => assert_eq!(found.unwrap().as_ref(), Some(application)),
        }
    }
}

#[tokio::test]
async fn marks_are_set_and_replaced() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.database.mark("sandbox").await.unwrap(), None);
    for value in ["1", "2"] {
        fixture.database.set_mark("sandbox", value).await.unwrap();
    }
    assert_eq!(
        fixture.database.mark("sandbox").await.unwrap().as_deref(),
        Some("2")
    );
    assert!(!fixture.database.is_empty().await.unwrap());
}

#[tokio::test]
async fn a_secret_is_kept_as_its_hash() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller.id).await;
    let secret = ClientSecret::from_random(&[9; 32]);
    let tx = fixture.begin().await;
    tx.save_application(application.with_secret(&secret))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let client = fixture.place.connect().await;
    let stored: Vec<u8> = client
        .query_one("select secret_hash from applications", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(stored, secret.hash().bytes());
}
