//! The gate: exact counts, and nothing remembered of a token.

use std::{collections::BTreeSet, sync::Arc};

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Change, StoreError};
use oauth::{
    Application, ApplicationStatus, ClientSecret, FamilyKind, Gate, Scope, SecretHash, TokenKey, TokenKind,
};

use crate::support::{DEFAULT_LIMIT, Fixture, id, instant, key, new_token, only};

async fn admitted(gate: &Arc<dyn Gate>, token: TokenKey) -> bool {
    gate.admit(token).await.unwrap().is_some()
}

#[tokio::test]
async fn a_caller_is_known_by_its_token() {
    let fixture = Fixture::new().await;
    let (seller, application, token) = fixture.caller().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let admission = fixture.another().gate().admit(token).await.unwrap().unwrap();
    let principal = admission.principal;
    assert_eq!(
        (principal.seller, principal.seller_no),
        (seller.id, seller.seller_no)
    );
    assert_eq!(
        (principal.client_id, &principal.app_name),
        (application.client_id, &application.name)
    );
    assert_eq!(
        (principal.scopes, principal.kind),
        (application.scopes, TokenKind::Access)
    );
    assert!(principal.expires_at.is_some());
    assert_eq!(
        (admission.quota.limit, admission.quota.counted_at),
        (DEFAULT_LIMIT, instant())
    );
    assert_eq!(
        admission.quota.resets_at,
        "2026-03-01T10:01:00Z"
            .parse::<chrono::DateTime<chrono::Utc>>()
            .unwrap()
    );
}

#[tokio::test]
async fn what_is_no_living_token_is_not_counted() {
    let fixture = Fixture::new().await;
    let (_, application, token) = fixture.caller().await;
    let hash = SecretHash::of("ps_at_something else");
    let gate = fixture.another().gate();
    assert!(!admitted(&gate, TokenKey { hash, ..token }).await);
    assert!(
        !admitted(
            &gate,
            TokenKey {
                family: id().into(),
                ..token
            }
        )
        .await
    );
    let tx = fixture.begin().await;
    let expired = new_token(&application, FamilyKind::ClientCredentials, Some(tx.now()));
    tx.issue_token(expired).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!admitted(&fixture.another().gate(), key(&expired)).await);
    let counted: i64 = fixture
        .place
        .connect()
        .await
        .query_one("select count(*) from rate_windows", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(counted, 0);
}

#[tokio::test]
async fn a_personal_token_may_live_for_ever() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let built_in = Application::built_in(id().into(), seller.id, instant());
    let mut token = new_token(&built_in.after, FamilyKind::Personal, None);
    token.grant.scopes = only(Scope::Messaging);
    let tx = fixture.begin().await;
    tx.save_application(built_in).await.unwrap();
    tx.issue_token(token).await.unwrap();
    tx.commit().await.unwrap();
    let principal = fixture
        .another()
        .gate()
        .admit(key(&token))
        .await
        .unwrap()
        .unwrap()
        .principal;
    assert_eq!(
        (principal.kind, principal.expires_at),
        (TokenKind::Personal, None)
    );
    assert_eq!(principal.scopes, only(Scope::Messaging));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn places_are_exactly_one_to_n_over_two_processes() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller.id).await;
    let tokens = [
        fixture.token(&application).await,
        fixture.token(&application).await,
    ];
    let other = fixture.another();
    let gates = [fixture.database.gate(), fixture.database.gate(), other.gate()];
    let run = |n: usize| {
        let (gate, token) = (Arc::clone(&gates[n % 3]), tokens[n % 2]);
        tokio::spawn(async move {
            let mut places = Vec::new();
            for _ in 0..25 {
                places.push(gate.admit(token).await.unwrap().unwrap().quota.place);
            }
            places
        })
    };
    let places = join_all((0..40).map(run))
        .await
        .into_iter()
        .flat_map(Result::unwrap)
        .collect::<Vec<_>>();
    assert_eq!(places.len(), 1000);
    assert_eq!(
        places.into_iter().collect::<BTreeSet<_>>(),
        (1..=1000).collect::<BTreeSet<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_applications_in_many_orders_never_wait_in_a_circle() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let mut tokens = Vec::new();
    for _ in 0..30 {
        let application = fixture.application(seller.id).await;
        tokens.push(fixture.token(&application).await);
    }
    let gates = (0..4).map(|_| fixture.database.gate()).collect::<Vec<_>>();
    for round in 0..20_usize {
        let asked = gates.iter().enumerate().flat_map(|(n, gate)| {
            let mut mixed = tokens.clone();
            mixed.rotate_left((round * 7 + n * 11) % 30);
            if n % 2 == 1 {
                mixed.reverse();
            }
            mixed.into_iter().map(|token| {
                let gate = Arc::clone(gate);
                tokio::spawn(async move { gate.admit(token).await.unwrap().unwrap() })
            })
        });
        join_all(asked.collect::<Vec<_>>())
            .await
            .into_iter()
            .for_each(|done| drop(done.unwrap()));
    }
    let counts: Vec<i64> = fixture
        .place
        .connect()
        .await
        .query("select used from rate_windows", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(counts, [80; 30]);
}

#[tokio::test]
async fn every_change_is_seen_by_the_next_request() {
    let fixture = Fixture::new().await;
    let (seller, application, token) = fixture.caller().await;
    let gates = [(), ()].map(|()| fixture.another().gate());
    let save = async |change: Application| {
        let tx = fixture.begin().await;
        tx.save_application(Change::of_existing(change, Vec::new()))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    let is_let_in = async |expected: bool| {
        for gate in &gates {
            assert_eq!(admitted(gate, token).await, expected);
        }
    };
    is_let_in(true).await;
    let narrow = Application {
        scopes: only(Scope::OffersRead),
        rate_limit: std::num::NonZeroU32::new(5),
        ..application.clone()
    };
    save(narrow).await;
    for gate in &gates {
        let admission = gate.admit(token).await.unwrap().unwrap();
        assert_eq!(
            (admission.principal.scopes, admission.quota.limit),
            (only(Scope::OffersRead), 5)
        );
    }
    save(Application {
        status: ApplicationStatus::Suspended,
        ..application.clone()
    })
    .await;
    is_let_in(false).await;
    save(Application {
        status: ApplicationStatus::Pending,
        ..application.clone()
    })
    .await;
    is_let_in(true).await;
    save(
        application
            .clone()
            .with_secret(&ClientSecret::from_random(&[8; 32]))
            .after,
    )
    .await;
    is_let_in(true).await;
    for (undo, change) in [
        (
            "update families set revoked_at = null",
            "update families set revoked_at = api_now()",
        ),
        (
            "update access_tokens set revoked_at = null",
            "update access_tokens set revoked_at = api_now()",
        ),
        (
            "update sellers set closed_at = null",
            "update sellers set closed_at = api_now()",
        ),
        (
            "update applications set deleted_at = null",
            "update applications set deleted_at = api_now()",
        ),
    ] {
        fixture.tamper(change).await;
        is_let_in(false).await;
        fixture.tamper(undo).await;
        is_let_in(true).await;
    }
    let tx = fixture.begin().await;
    tx.close_seller(seller.id, tx.now()).await.unwrap();
    tx.commit().await.unwrap();
    is_let_in(false).await;
}

#[tokio::test]
async fn a_token_ends_at_its_instant() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let (_, _, token) = fixture.caller().await;
    let gate = fixture.another().gate();
    clock
        .freeze(instant() + TimeDelta::hours(1) - TimeDelta::microseconds(1))
        .await;
    assert!(admitted(&gate, token).await);
    clock.freeze(instant() + TimeDelta::hours(1)).await;
    assert!(!admitted(&gate, token).await);
}

#[tokio::test]
async fn a_window_is_a_clock_minute_of_the_database() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze("2026-03-01T10:00:59.999999Z".parse().unwrap()).await;
    let (_, _, token) = fixture.caller().await;
    let gates = [(), ()].map(|()| fixture.another().gate());
    for (next, gate) in (1..).zip(gates.iter().cycle().take(6)) {
        let quota = gate.admit(token).await.unwrap().unwrap().quota;
        assert_eq!((quota.place, quota.retry_after()), (next, 1));
    }
    clock.advance(TimeDelta::microseconds(1000)).await;
    for (gate, place) in gates.iter().zip(1..) {
        let quota = gate.admit(token).await.unwrap().unwrap().quota;
        assert_eq!((quota.place, quota.retry_after()), (place, 60));
    }
    // A statement of the minute before that comes late counts there, and wipes nothing of the new minute.
    clock.freeze("2026-03-01T10:00:59Z".parse().unwrap()).await;
    assert_eq!(gates[0].admit(token).await.unwrap().unwrap().quota.place, 7);
    clock.freeze("2026-03-01T10:01:00Z".parse().unwrap()).await;
    assert_eq!(gates[0].admit(token).await.unwrap().unwrap().quota.place, 3);
}

#[tokio::test]
async fn what_is_wrong_with_one_caller_is_not_the_others_trouble() {
    let fixture = Fixture::new().await;
    let (_, _, token) = fixture.caller().await;
    let (_, _, bad) = fixture.caller().await;
    fixture
        .tamper(&format!(
            "update families set scopes = -1 & x'7fffffff'::int where id = '{}'",
            bad.family
        ))
        .await;
    fixture
        .tamper("update applications set scopes = x'7fffffff'::int")
        .await;
    let gate = fixture.another().gate();
    let (fine, broken) = futures_util::join!(gate.admit(token), gate.admit(bad));
    assert!(fine.unwrap().is_some());
    let error = broken.unwrap_err();
    let StoreError::Corrupt { row, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((row.table, row.id), ("families", bad.family.to_string()));
}

#[tokio::test]
async fn counts_do_not_wait_for_the_disk_and_nothing_else_inherits_that() {
    let fixture = Fixture::new().await;
    let (_, _, token) = fixture.caller().await;
    fixture.watch_commits("rate_windows").await;
    let gate = fixture.another().gate();
    assert!(admitted(&gate, token).await && admitted(&gate, token).await);
    assert_eq!(fixture.seen_commits().await, ["off"]);
}
