//! What has had its time goes, and nothing else.

use adapter_postgres::Cleared;
use chrono::TimeDelta;
use oauth::{Application, FamilyKind};

use crate::support::{Fixture, id, instant, key, new_token};

#[tokio::test]
async fn what_ended_over_an_hour_ago_is_cleared() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller.id).await;
    let built_in = Application::built_in(id().into(), seller.id, instant());
    let tx = fixture.begin().await;
    tx.save_application(built_in.clone()).await.unwrap();
    let hours = |n| Some(instant() + TimeDelta::hours(n));
    let short = new_token(&application, FamilyKind::ClientCredentials, hours(1));
    let long = new_token(&application, FamilyKind::ClientCredentials, hours(12));
    let [revoked, kept] = [0; 2].map(|_| new_token(&built_in.after, FamilyKind::Personal, None));
    for token in [short, long, revoked, kept] {
        tx.issue_token(token).await.unwrap();
    }
    for token in [revoked, kept] {
        tx.add_personal_token(seller.id, token.family, "script")
            .await
            .unwrap();
    }
    assert!(tx.revoke_personal_token(seller.id, revoked.family).await.unwrap());
    tx.commit().await.unwrap();
    let gate = fixture.database.gate();
    assert!(gate.admit(key(&long)).await.unwrap().is_some());

    assert_eq!(
        fixture.database.clear_expired().await.unwrap(),
        Cleared::default()
    );
    clock.advance(TimeDelta::minutes(60)).await;
    let nothing_but_counts = Cleared {
        rate_windows: 1,
        ..Cleared::default()
    };
    assert_eq!(
        fixture.database.clear_expired().await.unwrap(),
        nothing_but_counts
    );
    clock.advance(TimeDelta::minutes(61)).await;
    let all = Cleared {
        tokens: 1,
        families: 2,
        rate_windows: 0,
        more: false,
    };
    assert_eq!(fixture.database.clear_expired().await.unwrap(), all);
    let client = fixture.place.connect().await;
    let row = client
        .query_one(
            "select (select count(*) from families), (select count(*) from access_tokens), \
             (select count(*) from personal_tokens)",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
        (2, 2, 1)
    );
    for living in [long, kept] {
        assert!(gate.admit(key(&living)).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_batch_is_small_and_says_that_more_is_left() {
    let fixture = Fixture::new().await;
    fixture
        .tamper(
            "insert into rate_windows select api_now() - interval '1 day', 1, gen_random_uuid(), 1 \
             from generate_series(1, 2500)",
        )
        .await;
    let mut batches = Vec::new();
    loop {
        let cleared = fixture.database.clear_expired().await.unwrap();
        batches.push(cleared.rate_windows);
        if !cleared.more {
            break;
        }
    }
    assert_eq!(batches, [1000, 1000, 500]);
}
