//! Accounts, applications, personal tokens and the audit log. The contract's tests show which names and
//! addresses are taken.

use std::num::NonZeroU32;

use accounts::{Action, Actor, AuditFilter, NewOperatorToken, NewSeller, PasswordHash};
use chrono::TimeDelta;
use futures_util::future::join_all;
use oauth::{Application, ApplicationStatus, ClientType, Purpose, Scope, ScopeSet, SecretHash, Subject};
use serde_json::json;
use usecases::{Announcement, LockSet, Transaction};
use uuid::Uuid;

use crate::support::{Fixture, application, changed, created, id, instant, is_unexpected, new_seller};

#[tokio::test]
async fn an_account_is_found_by_the_letters_of_its_email_address_alone_and_closed_once() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("kim@example.com")).await.unwrap();
    tx.commit().await.unwrap();
    let others = [fixture.account().await, fixture.account().await];
    let page = fixture.database.sellers().sellers(seller.seller_no, 1).await;
    assert_eq!(page.unwrap(), others[..1]);
    let panel = fixture.database.panel();
    let account = panel.account("KIM@example.com").await.unwrap().unwrap();
    assert_eq!((account.seller, account.password), (seller.clone(), None));
    // If its locale has these letters, the database folds them to `k` and `i`.
    for spelling in ["\u{212a}im@example.com", "k\u{130}m@example.com"] {
        assert_ne!(Subject::account(spelling), Subject::account(&seller.email));
        assert_eq!(panel.account(spelling).await.unwrap(), None, "{spelling}");
    }
    let password = || PasswordHash::new("$argon2id$x".to_owned());
    let new = NewSeller {
        password: Some(password()),
        ..new_seller("lee@example.com")
    };
    let ids = [seller.id, new.id];
    let set = async |tx: &dyn Transaction| {
        tx.add_seller(new).await.unwrap();
        tx.set_password(seller.id, password()).await.unwrap();
    };
    fixture.tx(set).await;
    for id in ids {
        assert_eq!(panel.password(id).await.unwrap(), Some(password()));
    }
    let tx = fixture.begin().await;
    for hours in 0..2 {
        let at = instant() + TimeDelta::hours(hours);
        assert!(tx.close_seller(seller.id, at).await.unwrap());
    }
    let closed = tx.lock_seller(seller.id).await.unwrap().unwrap();
    assert_eq!(closed.closed_at, Some(instant()), "the first closure counts");
    assert!(!tx.close_seller(id().into(), instant()).await.unwrap());
    is_unexpected(tx.set_password(id().into(), password()).await);
}

#[tokio::test]
async fn an_application_is_deleted_once_and_a_seller_has_one_built_in_application() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let deleted = fixture.application(seller).await;
    let tx = fixture.begin().await;
    assert!(tx.delete_application(deleted.client_id).await.unwrap());
    assert!(!tx.delete_application(deleted.client_id).await.unwrap());
    assert!(tx.lock_application(deleted.client_id).await.unwrap().is_none());
    is_unexpected(tx.save_application(changed(deleted)).await);
    let built_in = |owner| {
        let built_in = Application::built_in(id().into(), owner, instant());
        Announcement::of_application(built_in, instant())
    };
    for owner in [seller, other] {
        tx.save_application(built_in(owner)).await.unwrap();
    }
    tx.commit().await.unwrap();
    let second = fixture.begin().await.save_application(built_in(seller)).await;
    let error = second.unwrap_err();
    assert_eq!(error.conflict(), Some("applications_built_in_key"));
}

#[tokio::test]
async fn pages_of_applications_go_on_before_the_last_one() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (mut own, mut all) = (Vec::new(), Vec::new());
    for n in 0..3 {
        own.push(fixture.client_of(seller).await);
        let others = fixture.client_of(other).await;
        if n > 0 {
            fixture.connect(seller, others).await;
            all.push(others);
        }
    }
    fixture.built_in(seller).await;
    // None of these: one that another seller connected, one that was disconnected, and deleted ones.
    let third = fixture.seller().await;
    let (foreign, left) = (fixture.client_of(third).await, fixture.client_of(third).await);
    fixture.connect(other, foreign).await;
    fixture.connect(seller, left).await;
    let leave = format!(
        "update connections set disconnected_at = api_now() where client_id = '{}'",
        left.uuid()
    );
    fixture.tamper(&leave).await;
    let gone = fixture.client_of(third).await;
    fixture.connect(seller, gone).await;
    fixture
        .tx(async |tx| tx.delete_application(gone).await)
        .await
        .unwrap();
    let deleted = fixture.client_of(seller).await;
    fixture
        .tx(async |tx| tx.delete_application(deleted).await)
        .await
        .unwrap();
    all.extend(&own);
    for list in [&mut own, &mut all] {
        list.sort_by(|one, other| other.cmp(one));
    }
    let (applications, directory) = (
        fixture.database.applications(),
        fixture.database.application_directory(),
    );
    assert_eq!(directory.application(deleted).await.unwrap(), None);
    let ids = |page: Vec<Application>| page.iter().map(|one| one.client_id).collect::<Vec<_>>();
    let mut before = None;
    for expected in own.chunks(2) {
        let page = ids(applications.applications_of(seller, before, 2).await.unwrap());
        assert_eq!(page, expected);
        before = page.last().copied();
    }
    before = None;
    for expected in all.chunks(2) {
        let page = directory.applications_at(seller, before, 2).await.unwrap();
        let page = ids(page.into_iter().map(|at| at.application).collect());
        assert_eq!(page, expected);
        before = page.last().copied();
    }
}

#[tokio::test]
async fn personal_tokens_are_listed_while_they_are_valid_and_revoked_once_by_their_owner() {
    let (fixture, clock) = Fixture::frozen().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(seller).await;
    let foreign = fixture.token(&application).await;
    let end = instant() + TimeDelta::hours(1);
    let [endless, ending] = fixture.personal_tokens(seller, [None, Some(end)]).await;
    fixture.personal_tokens(other, [None]).await;
    let panel = fixture.database.panel();
    let listed = async || {
        let listed = panel.personal_tokens(seller).await.unwrap();
        listed
            .iter()
            .map(|token| (token.id, token.expires_at))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        listed().await,
        [(ending.family, Some(end)), (endless.family, None)]
    );
    clock.freeze(end).await;
    assert_eq!(listed().await, [(endless.family, None)]);
    for (of, family, revoked) in [
        (other, endless.family, false),
        (seller, foreign.family, false),
        (seller, endless.family, true),
        (seller, endless.family, false),
    ] {
        let done = fixture.tx(async |tx| tx.revoke_personal_token(of, family).await.unwrap());
        assert_eq!(done.await, revoked);
    }
    assert_eq!(listed().await, []);
    // Of the revoked one nothing is passed by to list others.
    assert_eq!(fixture.rows_of("personal_tokens").await, 2);
    // Those that the gate accepts, until each of these ends them.
    for end in [
        "update families set revoked_at = api_now()",
        "update access_tokens set revoked_at = api_now()",
        "update applications set token_generation = token_generation + 1",
        "update sellers set token_generation = token_generation + 1",
    ] {
        let seller = fixture.seller().await;
        let [token] = fixture.personal_tokens(seller, [None]).await;
        for (change, is_live) in [("select", true), (end, false)] {
            fixture.tamper(change).await;
            let listed = panel.personal_tokens(seller).await.unwrap();
            let is_listed = listed.iter().any(|listed| listed.id == token.family);
            assert_eq!(
                (is_listed, fixture.admits(token).await),
                (is_live, is_live),
                "{end}"
            );
        }
    }
}

#[tokio::test]
async fn an_application_is_stored_with_every_field_and_no_other_with_it() {
    let (fixture, clock) = Fixture::frozen().await;
    let (owner, other) = (fixture.seller().await, fixture.seller().await);
    let neighbour = fixture.application(owner).await;
    let scopes = |scope| ScopeSet::from_iter([scope]);
    let first = Application {
        granted: Some(scopes(Scope::OrdersRead)),
        requested: scopes(Scope::OffersRead),
        rate_limit: NonZeroU32::new(7),
        ..application(owner)
    };
    let second = Application {
        client_id: first.client_id,
        owner: other,
        name: "Other".to_owned(),
        description: None,
        documentation_url: Some("https://docs.example/other".to_owned()),
        purpose: Purpose::OwnUse,
        client_type: ClientType::Public,
        redirect_uris: vec!["https://other.example/".to_owned()],
        scopes: scopes(Scope::OffersRead),
        granted: None,
        requested: ScopeSet::default(),
        status: ApplicationStatus::Suspended,
        rate_limit: None,
        built_in: true,
        secret: None,
        created_at: first.created_at,
    };
    let directory = fixture.database.application_directory();
    let read = async |application: &Application| {
        let read = directory.application(application.client_id).await;
        read.unwrap().unwrap()
    };
    fixture.save_application(created(first.clone())).await;
    assert_eq!(read(&first).await, first);
    let updated = "applications where updated_at = api_now()";
    for next in [&second, &first] {
        clock.advance(TimeDelta::hours(1)).await;
        fixture.save_application(changed(next.clone())).await;
        assert_eq!(read(next).await, *next);
        assert_eq!(fixture.rows_of(updated).await, 1);
    }
    assert_eq!(read(&neighbour).await, neighbour);
    clock.advance(TimeDelta::hours(1)).await;
    let deletion = async |tx: &dyn Transaction| tx.delete_application(first.client_id).await;
    assert!(fixture.tx(deletion).await.unwrap());
    assert_eq!(fixture.rows_of(updated).await, 1);
}

/// Entries of one transaction have the order in which they were written, as their ids have.
#[tokio::test]
async fn audit_entries_are_read_whole_by_page_and_by_time() {
    let fixture = Fixture::new().await;
    let database = fixture.another(2).with_os_user(Some("kim".to_owned()));
    let address = "2001:db8::1".parse().ok();
    let tx = database.units().begin(&LockSet::default()).await.unwrap();
    let is_command = |n: u8| n.is_multiple_of(2);
    let operator = |n: u8| Actor::Operator(Uuid::from_u128(n.into()));
    let actor = |n| {
        if is_command(n) {
            Actor::CommandLine
        } else {
            operator(n)
        }
    };
    for n in 0..60_u8 {
        let (action, subject) = (Action::SellerClosed, n.to_string());
        let logged = tx.log_action(actor(n), address, action, &subject, Some(json!({"n": n})));
        logged.await.unwrap();
    }
    tx.commit().await.unwrap();
    let entries = async |filter| fixture.database.audit_entries(filter, 100).await.unwrap();
    let all = entries(AuditFilter::default()).await;
    assert_eq!(all.len(), 60);
    for (n, entry) in (0..60).rev().zip(&all) {
        let os_user = is_command(n).then(|| "kim".to_owned());
        let written = (actor(n), address, n.to_string(), Some(json!({"n": n})), os_user);
        let entry = entry.clone();
        assert_eq!(
            (
                entry.actor,
                entry.address,
                entry.subject,
                entry.changes,
                entry.os_user
            ),
            written
        );
    }
    let at = all[0].at;
    let (earlier, later) = (at - TimeDelta::minutes(1), at + TimeDelta::minutes(1));
    for (since, until, before, read) in [
        (None, None, Some(all[20].id), &all[21..]),
        (Some(earlier), Some(later), None, &all[..]),
        (Some(later), None, None, &[]),
        (None, Some(earlier), None, &[]),
    ] {
        let filter = AuditFilter {
            since,
            until,
            before,
            about: None,
        };
        assert_eq!(entries(filter).await, read);
    }
}

/// Whoever presents tokens takes no connection from others, and each gets the answer about its own.
#[tokio::test]
async fn presented_operator_tokens_are_looked_up_beside_the_pool() {
    let (fixture, clock) = Fixture::frozen().await;
    let hash = |n: u128| SecretHash::of(&n.to_string());
    let tx = fixture.begin().await;
    for n in 0..4 {
        let token = NewOperatorToken {
            name: n.to_string(),
            lifetime: (n == 1).then(|| TimeDelta::seconds(59)),
            read_only: n == 2,
        };
        let added = tx.add_operator_token(Uuid::from_u128(n), hash(n), token);
        added.await.unwrap();
    }
    for revoked in [true, false] {
        let again = tx.revoke_operator_token(Uuid::from_u128(2)).await;
        assert_eq!(again.unwrap(), revoked);
    }
    tx.commit().await.unwrap();
    clock.freeze(instant() + TimeDelta::minutes(1)).await;
    let database = fixture.another(1);
    let all = database.units().begin(&LockSet::default()).await.unwrap();
    let operators = database.operator_tokens();
    let presented = join_all([0, 1, 2, 0, 9].map(|n| operators.operator(hash(n))));
    let found = presented.await.into_iter().map(|found| match found.unwrap() {
        Ok(live) => format!("{} lives", live.name),
        Err(dead) => dead.map_or_else(String::new, |dead| format!("{} is dead", dead.name)),
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["0 lives", "1 is dead", "2 is dead", "0 lives", ""]
    );
    drop(all);
    // Within a minute, a use is not recorded again.
    for (now, recorded) in [(119, 60), (120, 120)] {
        clock.freeze(instant() + TimeDelta::seconds(now)).await;
        assert!(operators.operator(hash(0)).await.unwrap().is_ok());
        let used = operators.operator_tokens().await.unwrap();
        let used: Vec<_> = used.into_iter().map(|token| token.used_at).collect();
        let recorded = instant() + TimeDelta::seconds(recorded);
        assert_eq!(used, [Some(recorded), None, None, None]);
    }
}
