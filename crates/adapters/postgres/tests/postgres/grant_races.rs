//! Grants under concurrency: transactions held open while others want the same rows.

use futures_util::join;
use oauth::{Consent, GrantRefusal, Scope, ScopeSet, Viewer};
use usecases::Transaction;

use crate::{
    consenting::{Parties, end_once_awaited, exchange, hash, keys, new_pair, rotate, somebody_waits},
    support::{Fixture, id, instant, only},
};

async fn admits(fixture: &Fixture, token: oauth::TokenKey) -> bool {
    fixture.database.gate().admit(token).await.unwrap().is_some()
}

#[tokio::test]
async fn of_two_rotations_of_one_token_the_second_ends_what_the_first_got() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    for commits in [true, false] {
        let pair = parties.pair(&fixture).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let got = rotate(&*first, &parties, pair.refresh).await.unwrap().unwrap();
        let (other, ()) = join!(
            rotate(&*second, &parties, pair.refresh),
            end_once_awaited(&client, first, commits)
        );
        let other = other.unwrap();
        second.commit().await.unwrap();
        if commits {
            assert_eq!(other.unwrap_err(), None, "it is a replay");
            assert!(!admits(&fixture, got.access).await && !admits(&fixture, pair.access).await);
        } else {
            assert!(admits(&fixture, other.unwrap().access).await);
            assert!(!admits(&fixture, got.access).await);
        }
    }
}

#[tokio::test]
async fn of_two_exchanges_of_one_code_the_second_ends_what_the_first_got() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    for commits in [true, false] {
        let code = parties.code(&fixture).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let got = exchange(&*first, &parties, code).await.unwrap().unwrap();
        let (other, ()) = join!(
            exchange(&*second, &parties, code),
            end_once_awaited(&client, first, commits)
        );
        assert_eq!(other.unwrap().is_err(), commits);
        second.commit().await.unwrap();
        assert!(!admits(&fixture, got.access).await);
    }
}

#[tokio::test]
async fn a_rotation_and_a_replay_are_judged_one_after_the_other() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    for replay_first in [true, false] {
        let old = parties.pair(&fixture).await;
        let tx = fixture.begin().await;
        let present = rotate(&*tx, &parties, old.refresh).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let (earlier, later) = if replay_first {
            (old.refresh, present.refresh)
        } else {
            (present.refresh, old.refresh)
        };
        let before = rotate(&*first, &parties, earlier).await.unwrap();
        let (after, ()) = join!(
            rotate(&*second, &parties, later),
            end_once_awaited(&client, first, true)
        );
        let after = after.unwrap().unwrap_err();
        second.commit().await.unwrap();
        if replay_first {
            assert_eq!((before.unwrap_err(), after), (None, Some(GrantRefusal::Ended)));
        } else {
            assert_eq!(after, None, "the replay is seen after the rotation too");
            assert!(!admits(&fixture, before.unwrap().access).await);
        }
        assert!(!admits(&fixture, present.access).await);
    }
}

#[tokio::test]
async fn a_pair_never_has_scopes_that_were_taken_away_while_its_family_was_waited_for() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    let (wide, narrow) = (parties.application.scopes, only(Scope::OrdersRead));
    let hold = async |scopes: ScopeSet| {
        let (scopes, id) = (scopes.bits(), parties.application.client_id.uuid());
        let set = format!("update applications set scopes = {scopes} where client_id = '{id}'");
        fixture.tamper(&set).await;
    };
    let pair = parties.pair(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    first.lock_family(pair.refresh.family).await.unwrap();
    let narrowing = async {
        somebody_waits(&client).await;
        hold(narrow).await;
        drop(first);
    };
    let (got, ()) = join!(rotate(&*second, &parties, pair.refresh), narrowing);
    let got = got.unwrap().unwrap();
    second.commit().await.unwrap();
    // What the gate lets through is no more than the pair's own scopes, however wide the application is again.
    hold(wide).await;
    let admission = fixture.database.gate().admit(got.access).await.unwrap().unwrap();
    assert_eq!(admission.principal.scopes, narrow);
}

#[tokio::test]
async fn an_exchange_waits_for_a_disconnection_and_fails_by_it() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    let pair = (parties.seller.id, parties.application.client_id);
    for commits in [false, true] {
        let code = parties.code(&fixture).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(first.disconnect(pair.0, pair.1).await.unwrap());
        let (got, ()) = join!(
            exchange(&*second, &parties, code),
            end_once_awaited(&client, first, commits)
        );
        let got = got.unwrap();
        second.commit().await.unwrap();
        if commits {
            assert_eq!(got.unwrap_err(), Some(GrantRefusal::Ended));
        } else {
            assert!(admits(&fixture, got.unwrap().access).await);
        }
    }
}

#[tokio::test]
async fn a_disconnection_waits_for_what_is_being_issued_and_ends_it() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    let (seller, client_id) = (parties.seller.id, parties.application.client_id);
    let disconnect = async |tx: &dyn Transaction| assert!(tx.disconnect(seller, client_id).await.unwrap());

    let code = parties.code(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let got = exchange(&*first, &parties, code).await.unwrap().unwrap();
    join!(disconnect(&*second), end_once_awaited(&client, first, true));
    assert!(admits(&fixture, got.access).await, "until it is committed");
    second.commit().await.unwrap();
    assert!(!admits(&fixture, got.access).await);

    parties.code(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let consent = parties.consent(first.now());
    let code = crate::consenting::code_of(&consent);
    first.add_consent(consent).await.unwrap();
    join!(disconnect(&*second), end_once_awaited(&client, first, true));
    second.commit().await.unwrap();
    let tx = fixture.begin().await;
    let refused = exchange(&*tx, &parties, code).await.unwrap().unwrap_err();
    assert_eq!(refused, Some(GrantRefusal::Ended));
}

#[tokio::test]
async fn a_disconnection_stops_what_a_fan_out_in_flight_has_queued() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    parties.code(&fixture).await;
    let (seller, client_id) = (parties.seller.id, parties.application.client_id);
    fixture
        .tamper(&format!(
            "insert into subscriptions (seller_id, id, client_id, created_at, active, url, events, secret) \
             values ('{seller}', '{}', '{}', api_now(), true, 'https://a.example', '{{order.paid}}', '')",
            id(),
            client_id.uuid()
        ))
        .await;
    let fan_out = fixture.place.connect().await;
    fan_out
        .batch_execute(
            "begin; select from subscriptions for key share; \
             insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
               select seller_id, id, gen_random_uuid(), api_now(), api_now(), 'order.paid', '' from subscriptions",
        )
        .await
        .unwrap();
    let tx = fixture.begin().await;
    let commit = async {
        somebody_waits(&client).await;
        fan_out.batch_execute("commit").await.unwrap();
    };
    let (ended, ()) = join!(tx.disconnect(seller, client_id), commit);
    assert!(ended.unwrap());
    tx.commit().await.unwrap();
    let due: i64 = client
        .query_one("select count(*) from deliveries where due_at is not null", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(due, 0);
}

#[tokio::test]
async fn of_two_decisions_on_one_screen_the_second_finds_the_first() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let viewer = Viewer {
        session: hash(),
        seller: id().into(),
    };
    for (known, commits) in [(false, true), (true, true), (false, false), (true, false)] {
        let screen = id().into();
        let lock = async |tx: &dyn Transaction| tx.lock_consent(screen, viewer, instant()).await.unwrap();
        if known {
            let tx = fixture.begin().await;
            lock(&*tx).await;
            tx.commit().await.unwrap();
        }
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let open = lock(&*first).await;
        let decided = Consent {
            decided_at: Some(instant()),
            ..open
        };
        first.save_consent(decided).await.unwrap();
        let (found, ()) = join!(lock(&*second), end_once_awaited(&client, first, commits));
        assert_eq!(found, if commits { decided } else { open });
    }
}

#[tokio::test]
async fn a_screen_that_is_given_up_meanwhile_is_the_next_ones() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let viewer = || Viewer {
        session: hash(),
        seller: id().into(),
    };
    let (first, second, screen) = (viewer(), viewer(), id().into());
    let tx = fixture.begin().await;
    tx.lock_consent(screen, first, instant()).await.unwrap();
    tx.commit().await.unwrap();
    let (giving_up, taking) = (fixture.begin().await, fixture.begin().await);
    assert!(giving_up.release_consent(screen, first).await.unwrap());
    let (found, ()) = join!(
        taking.lock_consent(screen, second, instant()),
        end_once_awaited(&client, giving_up, true)
    );
    assert_eq!(found.unwrap().viewer, second);
}

#[tokio::test]
async fn whether_a_pair_was_stored_is_known_once_its_transaction_has_ended() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let parties = Parties::new(&fixture).await;
    for commits in [true, false] {
        let code = parties.code(&fixture).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        first.lock_family(code.family).await.unwrap();
        let pair = new_pair(parties.application.scopes, first.now());
        first.use_code(code, pair).await.unwrap();
        let ask = async {
            second.lock_family(code.family).await.unwrap();
            second
                .has_access_token(keys(code.family, &pair).access)
                .await
                .unwrap()
        };
        let (stored, ()) = join!(ask, end_once_awaited(&client, first, commits));
        assert_eq!(stored, commits);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_rotations_of_one_token_one_gets_a_pair_and_it_is_dead() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    let turn = async || {
        let tx = fixture.begin().await;
        let got = rotate(&*tx, &parties, pair.refresh).await.unwrap();
        tx.commit().await.unwrap();
        got
    };
    let all = futures_util::future::join_all((0..20).map(|_| turn())).await;
    let issued = all.iter().flatten().collect::<Vec<_>>();
    assert_eq!(issued.len(), 1);
    assert!(!admits(&fixture, issued[0].access).await);
}
