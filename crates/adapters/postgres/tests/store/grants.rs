//! Grants under concurrency, with transactions held open while others need the same rows; and connections.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::join;
use oauth::{
    Application, ClientId, Consent, FamiliesOf, GrantRefusal, NewConsent, Scope, ScopeSet, TokenKey, Viewer,
};
use usecases::Transaction;

use crate::support::{Fixture, Parties, changed, hash, id, instant, is_unexpected, new_pair, only};

#[tokio::test]
async fn a_concurrent_rotation_and_replay_are_serialized() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    for replay_first in [true, false] {
        let old = parties.pair(&fixture).await;
        let present = parties.rotated(&fixture, old.refresh).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let mut tokens = [present.refresh, old.refresh];
        if replay_first {
            tokens.reverse();
        }
        let before = parties.rotate(&*first, tokens[0]).await.unwrap();
        let (after, ()) = join!(
            parties.rotate(&*second, tokens[1]),
            fixture.end_once_it_blocks_another(first, true)
        );
        let after = after.unwrap().unwrap_err();
        second.commit().await.unwrap();
        if replay_first {
            assert_eq!((before.unwrap_err(), after), (None, Some(GrantRefusal::Revoked)));
        } else {
            assert_eq!(after, None, "the replay is seen after the rotation too");
            assert!(!fixture.admits(before.unwrap().access).await);
        }
        assert!(!fixture.admits(present.access).await);
    }
}

#[tokio::test]
async fn a_rotation_uses_the_scopes_that_apply_after_its_lock() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let (wide, narrow) = (parties.application.scopes, only(Scope::OrdersRead));
    let set_scopes = async |scopes: ScopeSet| {
        let (scopes, id) = (scopes.bits(), parties.client_id().uuid());
        let sql = format!("update applications set scopes = {scopes} where client_id = '{id}'");
        fixture.tamper(&sql).await;
    };
    let pair = parties.pair(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    first.lock_family(pair.refresh.family).await.unwrap();
    let narrowing = async {
        fixture.wait_for_blocked_session().await;
        set_scopes(narrow).await;
        drop(first);
    };
    let (issued, ()) = join!(parties.rotate(&*second, pair.refresh), narrowing);
    second.commit().await.unwrap();
    // The gate admits at most the pair's own scopes, even after the application's scopes were widened again.
    set_scopes(wide).await;
    let access = issued.unwrap().unwrap().access;
    let admission = fixture.database.gate().admit(access).await;
    assert_eq!(admission.unwrap().unwrap().principal.scopes, narrow);
}

#[tokio::test]
async fn a_disconnection_waits_for_a_pair_being_issued_and_ends_it() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let code = parties.code(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let issued = parties.exchange(&*first, code).await.unwrap().unwrap();
    join!(
        parties.disconnect(&*second),
        fixture.end_once_it_blocks_another(first, true)
    );
    assert!(fixture.admits(issued.access).await, "until it is committed");
    second.commit().await.unwrap();
    assert!(!fixture.admits(issued.access).await);

    parties.code(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let code = parties.add_consent(&*first).await;
    join!(
        parties.disconnect(&*second),
        fixture.end_once_it_blocks_another(first, true)
    );
    second.commit().await.unwrap();
    let refused = parties.exchange(&*fixture.begin().await, code).await.unwrap();
    assert_eq!(refused.unwrap_err(), Some(GrantRefusal::Disconnected));
}

/// Beside it the same seller is connected with another application, and the same application with another seller.
#[tokio::test]
async fn a_disconnection_ends_the_tokens_of_its_connection_alone() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let [another, customer] = parties.beside(&fixture).await;
    let mut tokens = Vec::new();
    for connected in [&parties, &another, &customer] {
        tokens.push(connected.pair(&fixture).await.access);
    }
    fixture.tx(async |tx| parties.disconnect(tx).await).await;
    let again = async |tx: &dyn Transaction| tx.disconnect(parties.seller, parties.client_id()).await;
    assert!(!fixture.tx(again).await.unwrap(), "it is not connected");
    let mut admitted = Vec::new();
    for token in tokens {
        admitted.push(fixture.admits(token).await);
    }
    assert_eq!(admitted, [false, true, true]);
}

#[tokio::test]
async fn a_disconnection_stops_deliveries_of_a_concurrent_fan_out() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    parties.code(&fixture).await;
    fixture.subscribe(parties.seller, parties.client_id()).await;
    let fan_out = fixture.test_database.connect().await;
    let queue = "begin; select from subscriptions for key share; \
        insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
          select seller_id, id, gen_random_uuid(), api_now(), api_now(), 'order.paid', '' from subscriptions";
    fan_out.batch_execute(queue).await.unwrap();
    // The decision waits for no fan-out.
    fixture.tx(async |tx| parties.disconnect(tx).await).await;
    join!(fixture.follow_up(), async {
        fixture.wait_for_blocked_session().await;
        fan_out.batch_execute("commit").await.unwrap();
    });
    let stopped = fixture.rows_of("deliveries where due_at is null").await;
    assert_eq!((stopped, fixture.waiting().await), (1, 1), "but the last one");
}

/// Nothing is revoked by a sweep: what is being issued meanwhile dies too, and what is issued afterwards
/// lives.
#[tokio::test]
async fn one_row_revokes_all_tokens_of_an_application_or_a_seller_also_those_in_the_making() {
    let fixture = Fixture::new().await;
    for (of_seller, rotates) in [(false, false), (false, true), (true, false), (true, true)] {
        let parties = Parties::new(&fixture).await;
        let of = if of_seller {
            FamiliesOf::Seller(parties.seller)
        } else {
            FamiliesOf::Application(parties.client_id())
        };
        let [personal] = fixture.personal_tokens(parties.seller, [None]).await;
        let (old, rotated) = (parties.pair(&fixture).await, parties.pair(&fixture).await);
        let code = parties.code(&fixture).await;
        let issuing = fixture.begin().await;
        let (consented, pair) = if rotates {
            let pair = parties.rotate(&*issuing, rotated.refresh).await.unwrap();
            (code, pair.unwrap())
        } else {
            (parties.add_consent(&*issuing).await, rotated)
        };
        fixture.tx(async |tx| tx.revoke_families(of).await.unwrap()).await;
        issuing.commit().await.unwrap();
        for swept in [false, true] {
            for key in [old.access, pair.access] {
                assert!(!fixture.admits(key).await);
            }
            let holder = fixture.database.grants().holder(old.refresh).await.unwrap();
            assert!(!holder.unwrap().is_usable);
            let listed = fixture.database.panel().personal_tokens(parties.seller).await;
            let alive = usize::from(!of_seller);
            let left = (fixture.admits(personal).await, listed.unwrap().len());
            assert_eq!(left, (!of_seller, alive));
            let tx = fixture.begin().await;
            for code in [code, consented] {
                let refused = parties.exchange(&*tx, code).await.unwrap();
                assert_eq!(refused.unwrap_err(), Some(GrantRefusal::Revoked));
            }
            let refused = parties.rotate(&*tx, pair.refresh).await.unwrap();
            assert_eq!(refused.unwrap_err(), Some(GrantRefusal::Revoked));
            let counted = tx.count_personal_tokens(parties.seller, tx.now()).await.unwrap();
            assert_eq!(counted, alive);
            drop(tx);
            let grants = fixture.database.grants();
            let connected = grants.connections(parties.seller, None, 50).await.unwrap();
            let left: Vec<_> = connected.iter().map(|one| one.scopes).collect();
            assert_eq!(left, [ScopeSet::default()], "a connection without access");
            if !swept {
                fixture.follow_up().await;
            }
        }
        let revoked = fixture.rows_of("families where revoked_at is not null").await;
        assert!(revoked >= 3, "the families of {of}: {revoked}");
        // A family of the new generation lives, also where the follow-up comes later. The last one is not
        // due.
        let late = format!(
            "update families set revoked_at = null; delete from follow_ups;
             insert into follow_ups (seller_id, client_id, due_at)
             values ('{seller}', null, api_now()), (null, '{client}', api_now()), ('{seller}', null, api_now() + interval '1 hour')",
            seller = parties.seller,
            client = parties.client_id().uuid(),
        );
        let new = parties.pair(&fixture).await;
        fixture.tamper(&late).await;
        fixture.follow_up().await;
        assert_eq!(fixture.rows_of("follow_ups").await, 1);
        assert!(fixture.admits(new.access).await);
    }
}

/// An account ends with its applications, those of other sellers stay.
#[tokio::test]
async fn tokens_of_what_has_ended_are_revoked_and_no_others() {
    let fixture = Fixture::new().await;
    let (closing, other) = (fixture.seller().await, fixture.seller().await);
    let mut applications = Vec::new();
    for owner in [other, other, closing, closing] {
        let application = fixture.application(owner).await;
        fixture.token(&application).await;
        applications.push(application.client_id);
    }
    let [deleted, _, own, gone] = applications[..] else {
        unreachable!()
    };
    let ended = async |expected: &[ClientId], queued: i64| {
        fixture.follow_up().await;
        let revoked = "select client_id::text from families where revoked_at is not null";
        let revoked: BTreeSet<_> = fixture.texts(revoked).await.into_iter().collect();
        let expected: BTreeSet<_> = expected.iter().map(|id| id.uuid().to_string()).collect();
        assert_eq!(revoked, expected);
        assert_eq!(
            fixture.count("select last_value from follow_ups_id_seq").await,
            queued
        );
    };
    for (client_id, expected) in [(deleted, &[deleted][..]), (gone, &[deleted, gone])] {
        let removes = async |tx: &dyn Transaction| tx.delete_application(client_id).await;
        assert!(fixture.tx(removes).await.unwrap());
        ended(expected, if client_id == deleted { 1 } else { 2 }).await;
    }
    let closes = async |tx: &dyn Transaction| tx.close_seller(closing, tx.now()).await;
    assert!(fixture.tx(closes).await.unwrap());
    // The account's, and its application's that was left.
    ended(&[deleted, gone, own], 4).await;
    let closes = async |tx: &dyn Transaction| tx.close_seller(other, tx.now()).await;
    assert!(fixture.tx(closes).await.unwrap());
    ended(&applications, 6).await;
}

/// Two applications of a seller: a worker has the follow-up of the first, another one that of the second.
#[tokio::test]
async fn a_follow_up_that_was_changed_meanwhile_is_left_to_whoever_changed_it() {
    let (fixture, _clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let first = fixture.application(seller).await;
    fixture.token(&first).await;
    let revoke = async |of| fixture.tx(async |tx| tx.revoke_families(of).await).await.unwrap();
    for client_id in [first.client_id, fixture.client_of(seller).await] {
        revoke(FamiliesOf::Application(client_id)).await;
    }
    let is_first = "id = (select min(id) from follow_ups)";
    // As `TAKE` does.
    let take = format!("update follow_ups set due_at = api_now() + interval '30 s' where not {is_first}");
    fixture.tamper(&take).await;
    let due = async || {
        let due = "select (due_at - api_now())::text from follow_ups order by id";
        fixture.texts(due).await
    };
    assert!(fixture.database.follow_up().await.unwrap());
    assert_eq!(
        due().await,
        ["00:00:00", "00:00:30"],
        "a family was left to be revoked"
    );
    for families in ["update families set revoked_at = null", "select"] {
        let again = format!("update follow_ups set due_at = api_now() where {is_first}; {families}");
        for statements in [&again, "begin; lock families"] {
            fixture.tamper(statements).await;
        }
        let ((), followed) = join!(
            async {
                fixture.wait_for_blocked_session().await;
                let takes = "update follow_ups set due_at = api_now() + interval '1 min' where";
                fixture.tamper(&format!("{takes} {is_first}; commit")).await;
            },
            fixture.database.follow_up()
        );
        assert!(followed.unwrap());
        assert_eq!(due().await, ["00:01:00", "00:00:30"]);
    }
    fixture.tamper("update follow_ups set due_at = api_now()").await;
    fixture.tamper(&take).await;
    assert!(fixture.database.follow_up().await.unwrap());
    assert_eq!(due().await, ["00:00:30"]);

    // The account is not closed, so its applications go on.
    revoke(FamiliesOf::Seller(seller)).await;
    fixture.follow_up().await;
    assert_eq!(fixture.count("select last_value from follow_ups_id_seq").await, 3);
}

#[tokio::test]
async fn what_is_decided_again_adds_no_follow_up_and_is_due_at_once() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let [one, another] = [fixture.client_of(seller).await, fixture.client_of(seller).await];
    let revoke_of = async |of| fixture.tx(async |tx| tx.revoke_families(of).await).await.unwrap();
    let revoke = async |seller| revoke_of(FamiliesOf::Seller(seller)).await;
    for seller in [seller, seller, other] {
        revoke(seller).await;
    }
    for application in [one, one, another] {
        revoke_of(FamiliesOf::Application(application)).await;
    }
    assert_eq!(fixture.rows_of("follow_ups").await, 4);
    // As `TAKE` does: the worker removes the row only if it is still due then.
    let take = "update follow_ups set due_at = api_now() + interval '30 seconds'";
    fixture.tamper(take).await;
    revoke(seller).await;
    let due = "select seller_id::text from follow_ups where due_at <= api_now()";
    assert_eq!(fixture.texts(due).await, [seller.to_string()]);
    // One that is about to be removed is not waited for.
    let removing = format!("begin; delete from follow_ups where seller_id = '{seller}'");
    fixture.tamper(&removing).await;
    revoke(seller).await;
    fixture.tamper("commit").await;
    assert_eq!(fixture.rows_of("follow_ups").await, 4);
}

fn viewer() -> Viewer {
    Viewer {
        session: hash(),
        seller: id().into(),
    }
}

#[tokio::test]
async fn of_two_concurrent_decisions_on_a_consent_screen_the_second_sees_the_first() {
    let fixture = Fixture::new().await;
    let viewer = viewer();
    for (known, commits) in [(false, true), (true, true), (false, false), (true, false)] {
        let screen = id().into();
        let lock = async |tx: &dyn Transaction| tx.lock_consent(screen, viewer, instant()).await.unwrap();
        if known {
            fixture.tx(lock).await;
        }
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let open = lock(&*first).await;
        let decided = Consent {
            decided_at: Some(instant()),
            ..open
        };
        let other = first.lock_consent(id().into(), viewer, instant()).await.unwrap();
        first.save_consent(decided).await.unwrap();
        let seen = first.lock_consent(other.id, viewer, instant()).await.unwrap();
        assert_eq!(seen, other, "another screen is still open");
        let (seen, ()) = join!(lock(&*second), fixture.end_once_it_blocks_another(first, commits));
        assert_eq!(seen, if commits { decided } else { open });
        drop(second);
        if commits {
            let (twice, again) = (fixture.begin().await, fixture.begin().await);
            is_unexpected(twice.save_consent(decided).await);
            is_unexpected(again.save_consent(open).await);
            let released = fixture.begin().await.release_consent(screen, viewer).await;
            assert!(!released.unwrap(), "a decided one stays");
        }
    }
}

#[tokio::test]
async fn a_released_consent_screen_belongs_to_the_next_viewer() {
    let fixture = Fixture::new().await;
    let (first, second, screen) = (viewer(), viewer(), id().into());
    let lock = async |viewer, tx: &dyn Transaction| tx.lock_consent(screen, viewer, instant()).await.unwrap();
    fixture.tx(async |tx| lock(first, tx).await).await;
    let seen = fixture.tx(async |tx| lock(second, tx).await).await;
    assert_eq!(seen.viewer, first, "a later viewer finds it unchanged");
    let (giving_up, taking) = (fixture.begin().await, fixture.begin().await);
    let another_session = Viewer {
        session: hash(),
        ..first
    };
    let another_seller = Viewer {
        seller: id().into(),
        ..first
    };
    for other in [second, another_session, another_seller] {
        assert!(!giving_up.release_consent(screen, other).await.unwrap());
    }
    assert!(giving_up.release_consent(screen, first).await.unwrap());
    let (seen, ()) = join!(
        lock(second, &*taking),
        fixture.end_once_it_blocks_another(giving_up, true)
    );
    assert_eq!(seen.viewer, second);
}

#[tokio::test]
async fn used_or_unknown_credentials_cannot_be_used() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let (code, used) = (parties.code(&fixture).await, parties.pair(&fixture).await);
    let next = || new_pair(only(Scope::OffersRead), instant());
    fixture
        .tx(async |tx| {
            tx.use_credential(code, next()).await.unwrap();
            tx.use_credential(used.refresh, next()).await.unwrap();
        })
        .await;
    for used in [code, used.refresh] {
        is_unexpected(fixture.begin().await.use_credential(used, next()).await);
    }
    is_unexpected(fixture.begin().await.revoke_family(id().into()).await);
    // The token of `used`, and the one that followed it, are found by family and hash together.
    let other = parties.pair(&fixture).await;
    let tx = fixture.begin().await;
    for (family, hash, is_known) in [
        (used.access.family, used.access.hash, true),
        (other.access.family, other.access.hash, true),
        (other.access.family, used.access.hash, false),
    ] {
        let found = tx.access_token(TokenKey { family, hash }).await.unwrap();
        assert_eq!(found.is_some(), is_known);
    }
    // A family has a generation exactly if it came from a consent.
    let personal = "update families set kind = 'personal'";
    let error = fixture.client.execute(personal, &[]).await.unwrap_err();
    let constraint = error.as_db_error().and_then(|error| error.constraint());
    assert_eq!(constraint, Some("families_generation_check"));
}

#[tokio::test]
async fn an_application_is_connected_until_it_is_disconnected_or_deleted() {
    let (fixture, clock) = Fixture::frozen().await;
    let parties = Parties::new(&fixture).await;
    let (seller, application) = (parties.seller, &parties.application);
    fixture.token(&fixture.application(seller).await).await;
    let grants = fixture.database.grants();
    let connections = async || grants.connections(seller, None, 50).await.unwrap();
    assert_eq!(connections().await, [], "an own token is no connection");
    let scopes = |all: [Scope; 2]| all.into_iter().collect();
    let two = scopes([Scope::OffersRead, Scope::OrdersRead]);
    for scopes in [only(Scope::OffersRead), two] {
        let consent = NewConsent {
            scopes,
            ..parties.consent(instant())
        };
        let done = fixture.tx(async |tx| tx.add_consent(consent).await).await;
        done.unwrap();
    }
    let narrowed = Application {
        scopes: scopes([Scope::OrdersRead, Scope::Messaging]),
        ..application.clone()
    };
    fixture.save_application(changed(narrowed)).await;
    let [connection] = &connections().await[..] else {
        panic!("one is connected")
    };
    let whose = (connection.client_id, connection.owner);
    assert_eq!(whose, (application.client_id, application.owner));
    assert_eq!(
        connection.scopes,
        only(Scope::OrdersRead),
        "of all consents, but no others than the application's"
    );
    assert_eq!((connection.connected_at, connection.used_at), (instant(), None));
    for (used, shown) in [("- interval '1 us'", None), ("", Some(instant()))] {
        let client = application.client_id.uuid();
        let set = format!(
            "insert into last_uses (seller_id, client_id, used_at) values ('{seller}', '{client}', api_now() {used}) \
             on conflict (seller_id, client_id) do update set used_at = excluded.used_at"
        );
        fixture.tamper(&set).await;
        let used_at = connections().await[0].used_at;
        assert_eq!(used_at, shown, "before it was connected it was another's use");
    }

    let holds = async |key| {
        let holder = grants.holder(key).await.unwrap().unwrap();
        assert_eq!((holder.client_id, holder.seller), (application.client_id, seller));
        holder.is_usable
    };
    let pair = parties.pair(&fixture).await;
    assert!(holds(pair.refresh).await);
    let revoke = async |tx: &dyn Transaction| tx.revoke_family(pair.access.family).await;
    fixture.tx(revoke).await.unwrap();
    assert!(!holds(pair.refresh).await, "the family is revoked");
    let pair = parties.pair(&fixture).await;
    for (early, left) in [(1, true), (0, false)] {
        let end = instant() + TimeDelta::days(30);
        clock.freeze(end - TimeDelta::microseconds(early)).await;
        assert_eq!(holds(pair.refresh).await, left, "until it expires");
    }
    assert_eq!(connections().await.len(), 1, "all codes and tokens expired");
    let pair = parties.pair(&fixture).await;
    fixture.tx(async |tx| parties.disconnect(tx).await).await;
    let left = (connections().await, holds(pair.refresh).await);
    assert_eq!(left, (vec![], false), "disconnected");
    parties.code(&fixture).await;
    assert_eq!(connections().await[0].connected_at, fixture.now().await);
    fixture.subscribe(seller, application.client_id).await;
    let subscriptions = fixture.database.subscriptions();
    let listed = async || {
        let listed = subscriptions.subscriptions_of_seller(seller, None, 50).await;
        (connections().await.len(), listed.unwrap().len())
    };
    assert_eq!(listed().await, (1, 1));
    // As if the deletion had not seen the subscription.
    fixture.tamper("update applications set deleted_at = now()").await;
    assert_eq!(listed().await, (0, 0));
}

/// Beside each case the same seller is connected with another application, and the same application with another
/// seller: both have all that a connection shows.
#[tokio::test]
async fn a_connection_is_listed_with_the_scopes_of_its_own_consents() {
    let fixture = Fixture::new().await;
    let grants = fixture.database.grants();
    for (change, has_scopes) in [
        (
            "update access_tokens set revoked_at = api_now() where family_id = '{family}'; \
             update refresh_tokens set used_at = api_now() where family_id = '{family}'",
            Some(true),
        ),
        (
            "update families set revoked_at = api_now() where id = '{family}'",
            Some(false),
        ),
        (
            "update connections set disconnected_at = api_now() where {ours}",
            None,
        ),
        (
            "update sellers set closed_at = api_now() where id = '{owner}'",
            None,
        ),
    ] {
        let parties = Parties::new(&fixture).await;
        let (seller, client_id) = (parties.seller, parties.client_id());
        let [another, customer] = parties.beside(&fixture).await;
        let ours = parties.pair(&fixture).await;
        for parties in [&parties, &another, &customer] {
            parties.pair(&fixture).await;
        }
        let mine = format!("client_id = '{}' and seller_id = '{seller}'", client_id.uuid());
        // Of what is connected here, one family remains.
        let family = ours.access.family;
        fixture
            .tamper(&format!(
                "delete from families where {mine} and id <> '{family}'; \
                 insert into last_uses (seller_id, client_id, used_at) values ('{seller}', '{}', api_now())",
                another.client_id().uuid()
            ))
            .await;
        let change = change
            .replace("{family}", &family.to_string())
            .replace("{ours}", &mine)
            .replace("{owner}", &parties.application.owner.to_string());
        fixture.tamper(&change).await;
        let found = grants.connection(seller, client_id).await.unwrap();
        let all = grants.connections(seller, None, 50).await.unwrap();
        assert_eq!(all.iter().find(|one| one.client_id == client_id), found.as_ref());
        let has_another = all.iter().any(|one| one.client_id == another.client_id());
        assert!(has_another, "{change}");
        let expected = has_scopes.map(|has_scopes| (client_id, has_scopes, None));
        let found = found.map(|one| (one.client_id, one.scopes != ScopeSet::default(), one.used_at));
        assert_eq!(found, expected, "{change}");
        let last = all.last().map(|one| one.name.clone());
        assert_eq!(grants.connections(seller, last, 50).await.unwrap(), []);
    }
}
