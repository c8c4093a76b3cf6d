//! What has had its time goes, and nothing else.

use adapter_postgres::Cleared;
use chrono::TimeDelta;
use oauth::{Application, FamilyKind};

use crate::{
    consenting::{Parties, rotate},
    support::{Fixture, id, instant, key, new_token},
};

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
        panel: 0,
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

async fn rows(fixture: &Fixture, table: &str) -> i64 {
    let count = format!("select count(*) from {table}");
    fixture
        .place
        .connect()
        .await
        .query_one(&count, &[])
        .await
        .unwrap()
        .get(0)
}

/// Clears a batch, and tells how much went of tokens, families and the panel.
async fn clear(fixture: &Fixture) -> (usize, usize, usize) {
    let cleared = fixture.database.clear_expired().await.unwrap();
    assert!(!cleared.more);
    (cleared.tokens, cleared.families, cleared.panel)
}

#[tokio::test]
async fn a_consented_family_goes_with_the_last_of_its_codes_and_tokens() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let parties = Parties::new(&fixture).await;
    parties.code(&fixture).await;
    let used = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    let pair = rotate(&*tx, &parties, used.refresh).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    let after = async |time| clock.freeze(instant() + time + TimeDelta::hours(1)).await;
    after(TimeDelta::minutes(10)).await;
    assert_eq!(clear(&fixture).await, (0, 0, 0));
    after(TimeDelta::minutes(11)).await;
    assert_eq!(
        clear(&fixture).await,
        (2, 1, 0),
        "the code that nobody exchanged takes its family along"
    );
    after(TimeDelta::minutes(61)).await;
    assert_eq!(
        clear(&fixture).await,
        (2, 0, 0),
        "the access tokens go, the refresh tokens stay"
    );
    let tx = fixture.begin().await;
    assert!(tx.lock_family(pair.refresh.family).await.unwrap().is_some());
    let (_, known) = tx.lock_refresh_token(used.refresh).await.unwrap().unwrap();
    assert!(
        known.unwrap().used_at.is_some(),
        "a used one is known until it would have expired"
    );
    drop(tx);
    after(TimeDelta::days(30) + TimeDelta::minutes(1)).await;
    assert_eq!(clear(&fixture).await, (2, 1, 0));
    assert_eq!(rows(&fixture, "families").await, 0);
    assert_eq!(rows(&fixture, "connections").await, 1);
}

#[tokio::test]
async fn a_revoked_family_takes_its_codes_and_tokens_along() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    tx.revoke_family(pair.access.family).await.unwrap();
    tx.commit().await.unwrap();
    clock.advance(TimeDelta::minutes(60)).await;
    assert_eq!(clear(&fixture).await, (0, 0, 0));
    clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(clear(&fixture).await, (0, 1, 0));
    for table in ["authorization_codes", "refresh_tokens", "access_tokens"] {
        assert_eq!(rows(&fixture, table).await, 0, "{table}");
    }
}

#[tokio::test]
async fn what_the_panel_keeps_goes_when_its_time_is_over() {
    const FILL: &str = "
        insert into sessions select sha256('old'), id, api_now() - age, api_now() - age
          from sellers, (values (interval '9 hours 1 s')) t (age);
        insert into sessions select sha256('young'), id, api_now(), api_now() - interval '0 s' from sellers;
        insert into links select sha256(kind::bytea), id, kind, api_now() - age
          from sellers, (values ('invitation', interval '1 hour 1 s'), ('sign-in', interval '59 min')) t (kind, age);
        insert into consents select gen_random_uuid(), gen_random_uuid(), sha256('s'), api_now() - age
          from (values (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into flashes select sha256('s'), gen_random_uuid(), api_now() - age, 'sealed'
          from (values (interval '8 days 1 s'), (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into account_mails (id, seller_id, due_at, sent_at, kind, recipient, recipient_name, expires_at)
          select gen_random_uuid(), id, null, api_now() - age, 'invitation', 'a@b', 'n', api_now()
          from sellers, (values (interval '30 days 1 s'), (interval '29 days')) t (age);
        insert into account_mails (id, seller_id, due_at, url, kind, recipient, recipient_name, expires_at)
          select gen_random_uuid(), id, api_now() - age, 'sealed', 'invitation', 'a@b', 'n', api_now() - age
          from sellers, (values (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into api_usage select gen_random_uuid(), gen_random_uuid(), api_now() - age, api_now(), 1, 200
          from (values (interval '35 days 1 s'), (interval '34 days')) t (age);
        insert into audit_log select ('00000000-0000-7000-8000-00000000000' || n)::uuid, api_now() - age, null, 'command_line',
            null, 'seller.closed', 'x'
          from (values (1, interval '400 days 1 s'), (2, interval '399 days')) t (n, age)";
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    fixture.seller().await;
    fixture.tamper(FILL).await;
    // Of the three flashes one goes, and another loses what nobody came for. A mail that nobody sent is given up.
    assert_eq!(clear(&fixture).await, (0, 0, 9));
    assert_eq!(clear(&fixture).await, (0, 0, 0));
    for (table, left) in [
        ("sessions", 1),
        ("links", 1),
        ("consents", 1),
        ("flashes", 2),
        ("flashes where sealed is not null", 1),
        ("account_mails", 3),
        ("account_mails where url is not null", 1),
        ("account_mails where dead_at is not null", 1),
        ("api_usage", 1),
        ("audit_log", 1),
    ] {
        assert_eq!(rows(&fixture, table).await, left, "{table}");
    }
}
