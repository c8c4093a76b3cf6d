//! Claims on idempotency keys: who runs, who waits, who is answered from memory.

use std::time::Duration;

use adapter_postgres::Database;
use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Claim, Claimed, CommitError, KeySpace, LOST_CLAIM, Remembered, SellerId};
use tokio::time::Instant;

use crate::support::{Fixture, answer, claim, database, id, instant};

const LEASE: Duration = Duration::from_mins(1);

async fn complete(database: &Database, claim: &Claim, answer: &Remembered) {
    let tx = database.units().begin().await.unwrap();
    tx.complete(claim, answer).await.unwrap();
    tx.commit().await.unwrap();
}

fn seller() -> SellerId {
    id().into()
}

#[tokio::test]
async fn a_key_runs_once_and_is_then_answered_from_memory() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let seller = seller();
    let first = claim(seller, "k", "body");
    assert_eq!(claims.claim(&first, LEASE).await.unwrap(), Claimed::Run);
    let repeat = claim(seller, "k", "body");
    assert_eq!(claims.claim(&repeat, LEASE).await.unwrap(), Claimed::InProgress);
    let other = claim(seller, "k", "another body");
    assert_eq!(claims.claim(&other, LEASE).await.unwrap(), Claimed::Reused);
    let answer = Remembered {
        status: 201,
        body: "{\"ż\":\"\\u0000\"}".as_bytes().to_vec(),
    };
    complete(&fixture.database, &first, &answer).await;
    for repeat in [&repeat, &claim(seller, "k", "body"), &first.clone()] {
        let claimed = claims
            .claim(
                &Claim {
                    fence: id(),
                    ..repeat.clone()
                },
                LEASE,
            )
            .await
            .unwrap();
        assert_eq!(claimed, Claimed::Completed(answer.clone()));
    }
    assert_eq!(claims.claim(&other, LEASE).await.unwrap(), Claimed::Reused);
    // Another process sees the same.
    let elsewhere = database(fixture.place.url(), 1).claims();
    assert_eq!(
        elsewhere.claim(&repeat, LEASE).await.unwrap(),
        Claimed::Completed(answer)
    );
}

#[tokio::test]
async fn keys_of_different_spaces_never_meet() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let operator = Claim {
        space: KeySpace::Operator,
        ..claim(seller(), "k'; --", "body")
    };
    for claim in [
        claim(seller(), "k'; --", "body"),
        claim(seller(), "k'; --", "body"),
        operator,
    ] {
        assert_eq!(claims.claim(&claim, LEASE).await.unwrap(), Claimed::Run);
    }
}

#[tokio::test]
async fn an_answer_without_a_body_is_an_answer() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let first = claim(seller(), "k", "");
    claims.claim(&first, LEASE).await.unwrap();
    let answer = Remembered {
        status: 204,
        body: Vec::new(),
    };
    complete(&fixture.database, &first, &answer).await;
    let repeat = Claim { fence: id(), ..first };
    assert_eq!(
        claims.claim(&repeat, LEASE).await.unwrap(),
        Claimed::Completed(answer)
    );
}

#[tokio::test]
async fn who_released_leaves_nothing_and_who_completed_releases_nothing() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let (first, second) = (claim(seller(), "k", "a"), claim(seller(), "k", "b"));
    let second = Claim {
        space: first.space,
        ..second
    };
    claims.claim(&first, LEASE).await.unwrap();
    claims.release(&second).await.unwrap();
    assert_eq!(
        claims.claim(&second, LEASE).await.unwrap(),
        Claimed::Reused,
        "somebody else's release did something"
    );
    claims.release(&first).await.unwrap();
    assert_eq!(claims.claim(&second, LEASE).await.unwrap(), Claimed::Run);
    complete(&fixture.database, &second, &answer("b")).await;
    claims.release(&second).await.unwrap();
    let repeat = Claim {
        fence: id(),
        ..second
    };
    assert_eq!(
        claims.claim(&repeat, LEASE).await.unwrap(),
        Claimed::Completed(answer("b"))
    );
}

#[tokio::test]
async fn a_lease_that_ran_out_counts_as_absent_and_its_holder_can_complete_nothing() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let claims = fixture.database.claims();
    let first = claim(seller(), "k", "a");
    let second = Claim {
        space: first.space,
        ..claim(seller(), "k", "b")
    };
    claims.claim(&first, LEASE).await.unwrap();
    clock.advance(TimeDelta::milliseconds(59_999)).await;
    assert_eq!(claims.claim(&second, LEASE).await.unwrap(), Claimed::Reused);
    clock.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(
        claims.claim(&second, LEASE).await.unwrap(),
        Claimed::Run,
        "fingerprint included"
    );

    let late = fixture.begin().await;
    let error = late.complete(&first, &answer("a")).await.unwrap_err();
    assert_eq!(error.conflict(), Some(LOST_CLAIM));
    assert!(
        matches!(late.commit().await, Err(CommitError::RolledBack(_))),
        "the effect of a lost claim stands"
    );
    claims.release(&first).await.unwrap();
    complete(&fixture.database, &second, &answer("b")).await;

    // Completion does not look at the lease while nobody has taken the key.
    let slow = claim(seller(), "slow", "a");
    claims.claim(&slow, LEASE).await.unwrap();
    clock.advance(TimeDelta::hours(1)).await;
    complete(&fixture.database, &slow, &answer("slow")).await;
}

#[tokio::test]
async fn answers_are_remembered_for_a_day_from_completion() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let claims = fixture.database.claims();
    let first = claim(seller(), "k", "a");
    claims.claim(&first, LEASE).await.unwrap();
    clock.advance(TimeDelta::seconds(50)).await;
    complete(&fixture.database, &first, &answer("a")).await;
    clock.advance(TimeDelta::milliseconds(24 * 3_600_000 - 1)).await;
    let repeat = Claim { fence: id(), ..first };
    assert_eq!(
        claims.claim(&repeat, LEASE).await.unwrap(),
        Claimed::Completed(answer("a"))
    );
    clock.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(claims.claim(&repeat, LEASE).await.unwrap(), Claimed::Run);
}

#[tokio::test]
async fn a_completed_key_is_not_completed_again() {
    let fixture = Fixture::new().await;
    let first = claim(seller(), "k", "a");
    fixture.database.claims().claim(&first, LEASE).await.unwrap();
    complete(&fixture.database, &first, &answer("a")).await;
    let error = fixture
        .begin()
        .await
        .complete(&first, &answer("b"))
        .await
        .unwrap_err();
    assert_eq!(error.conflict(), Some(LOST_CLAIM));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_forty_at_once_exactly_one_runs() {
    let fixture = Fixture::new().await;
    let processes = [(); 4].map(|()| database(fixture.place.url(), 10).claims());
    for round in 0..5 {
        let seller = seller();
        let all = (0..40).map(|n| {
            let (claims, claim) = (&processes[n % 4], claim(seller, &format!("k{round}"), "body"));
            async move { claims.claim(&claim, LEASE).await.unwrap() }
        });
        let claimed = join_all(all).await;
        assert_eq!(
            claimed.iter().filter(|claimed| **claimed == Claimed::Run).count(),
            1,
            "{claimed:?}"
        );
        assert_eq!(
            claimed
                .iter()
                .filter(|claimed| **claimed == Claimed::InProgress)
                .count(),
            39
        );
    }
}

#[tokio::test]
async fn while_an_answer_is_about_to_be_committed_a_repeat_waits_a_moment_and_no_longer() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let first = claim(seller(), "k", "a");
    claims.claim(&first, LEASE).await.unwrap();
    let tx = fixture.begin().await;
    tx.complete(&first, &answer("a")).await.unwrap();
    let repeat = Claim { fence: id(), ..first };
    let began = Instant::now();
    assert_eq!(claims.claim(&repeat, LEASE).await.unwrap(), Claimed::InProgress);
    assert!(
        began.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        began.elapsed()
    );
    let (claimed, ()) =
        futures_util::join!(claims.claim(&repeat, LEASE), async { tx.commit().await.unwrap() });
    assert_eq!(claimed.unwrap(), Claimed::Completed(answer("a")));
}

#[tokio::test]
async fn a_remembered_body_is_sealed_and_opens_in_its_own_row_alone() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let (one, other) = (claim(seller(), "k", "a"), claim(seller(), "k", "a"));
    for claim in [&one, &other] {
        claims.claim(claim, LEASE).await.unwrap();
        complete(&fixture.database, claim, &answer("secret")).await;
    }
    let sealed: Vec<u8> = fixture
        .place
        .connect()
        .await
        .query_one(
            "select body from idempotency where seller_id = $1",
            &[&one.space.uuid()],
        )
        .await
        .unwrap()
        .get(0);
    assert!(sealed.starts_with(b"remembered-body|"));
    fixture
        .tamper(&format!(
            "update idempotency t set body = o.body from idempotency o \
        where t.seller_id = '{}' and o.seller_id = '{}'",
            one.space.uuid(),
            other.space.uuid()
        ))
        .await;
    let error = claims
        .claim(&Claim { fence: id(), ..one }, LEASE)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("idempotency["), "{error}");
    let repeat = Claim { fence: id(), ..other };
    assert_eq!(
        claims.claim(&repeat, LEASE).await.unwrap(),
        Claimed::Completed(answer("secret"))
    );
}

#[tokio::test]
async fn claims_do_not_wait_for_the_disk_and_effects_do() {
    let fixture = Fixture::new().await;
    let durable = "do $$ begin execute format('alter database %I set synchronous_commit = on', current_database()); end $$";
    fixture.tamper(durable).await;
    let client = fixture.place.connect().await;
    // The setting as it stands when the row is written.
    client
        .batch_execute(
            "create table seen (mode text);
        create function look() returns trigger language plpgsql as $$ begin
          insert into seen values (current_setting('synchronous_commit')); return new; end $$;
        create trigger look after insert or update on idempotency for each row execute function look()",
        )
        .await
        .unwrap();
    let claims = fixture.database.claims();
    let first = claim(seller(), "k", "a");
    claims.claim(&first, LEASE).await.unwrap();
    complete(&fixture.database, &first, &answer("a")).await;
    let rows = client.query("select mode from seen", &[]).await.unwrap();
    let modes = rows.iter().map(|row| row.get(0)).collect::<Vec<String>>();
    assert_eq!(modes, ["off", "on"]);
}

#[tokio::test]
async fn without_keys_nothing_is_remembered() {
    let fixture = Fixture::new().await;
    let bare = fixture.another();
    let first = claim(seller(), "k", "a");
    assert_eq!(bare.claims().claim(&first, LEASE).await.unwrap(), Claimed::Run);
    assert!(
        bare.units()
            .begin()
            .await
            .unwrap()
            .complete(&first, &answer("a"))
            .await
            .is_err()
    );
}
