//! Panel data, with transactions held open while others need the same rows.

use std::net::{IpAddr, Ipv4Addr};

use accounts::{LinkKind, PasswordHash};
use futures_util::{future::join_all, join};
use kernel::SellerId;
use oauth::SecretHash;
use usecases::account_links::{LinkRefusal, change_password, sign_in_by_link};
use usecases::{ActingSeller, Failure, Transaction};

use crate::support::{Fixture, hash, id, link, session};

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn password(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

/// A committed link.
async fn stored_link(fixture: &Fixture, seller: SellerId, kind: LinkKind) -> SecretHash {
    fixture.tx(async |tx| add_link(tx, seller, kind).await).await
}

async fn add_link(tx: &dyn Transaction, seller: SellerId, kind: LinkKind) -> SecretHash {
    let link = link(seller, kind, tx.now());
    tx.add_link(link).await.unwrap();
    link.hash
}

/// A seller with the password `before`, and a session.
async fn member(fixture: &Fixture) -> (SellerId, SecretHash) {
    let seller = fixture.seller().await;
    let set_up = async |tx: &dyn Transaction| {
        let session = session(seller, tx.now());
        tx.set_password(seller, password("before")).await.unwrap();
        tx.open_session(session).await.unwrap();
        (seller, session.hash)
    };
    fixture.tx(set_up).await
}

/// Changes the password from `before` to `changed`.
async fn change(
    tx: &dyn Transaction,
    (seller, session): (SellerId, SecretHash),
) -> Result<(), Failure<LinkRefusal>> {
    let by = ActingSeller {
        seller,
        address: HOME,
    };
    let change = (password("before"), password("changed"));
    change_password(tx, by, session, Some(&change)).await
}

fn refused<T: std::fmt::Debug>(done: Result<T, Failure<LinkRefusal>>) -> LinkRefusal {
    match done {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Each is asked for again and again in one batch. Some have to be recorded as used, one of them while another
/// batch records it.
#[tokio::test]
async fn each_session_of_a_batch_gets_its_own_answer() {
    let fixture = Fixture::new().await;
    let mut members = Vec::new();
    for _ in 0..6 {
        members.push(member(&fixture).await);
    }
    let [fresh, used, busy, idle, old, closed] = members[..] else {
        panic!("there are six")
    };
    for ((seller, _), change) in [
        (used, "seen_at = seen_at - interval '2 minutes'"),
        (busy, "seen_at = seen_at - interval '2 minutes'"),
        (idle, "seen_at = seen_at - interval '8 hours'"),
        (old, "created_at = created_at - interval '7 days'"),
    ] {
        let change = format!(
            "update sessions set created_at = created_at - interval '9 hours' where seller_id = '{0}';
             update sessions set {change} where seller_id = '{0}'",
            seller.uuid()
        );
        fixture.tamper(&change).await;
    }
    fixture.close(closed.0).await;
    let lock = format!(
        "begin; select from sessions where seller_id = '{}' for update",
        busy.0.uuid()
    );
    fixture.tamper(&lock).await;
    let panel = fixture.database.panel();
    let asked = (0..70).map(|n| members.get(n % 7).map_or_else(hash, |member| member.1));
    let asked: Vec<_> = asked.collect();
    let answers = join_all(asked.iter().map(|session| panel.signed_in(*session))).await;
    for (n, (session, answer)) in asked.iter().zip(answers).enumerate() {
        let found = answer.unwrap().map(|found| {
            let unseen = found.now - found.session.seen_at;
            (found.seller.id, found.session.hash, unseen.num_minutes())
        });
        let expected = match n % 7 {
            0 => Some((fresh.0, *session, 0)),
            1 => Some((used.0, *session, 0)),
            2 => Some((busy.0, *session, 2)),
            _ => None,
        };
        assert_eq!(found, expected, "{n}");
    }
    fixture.tamper("rollback").await;
}

async fn signed_in(fixture: &Fixture, session: SecretHash) -> bool {
    let found = fixture.database.panel().signed_in(session).await;
    found.unwrap().is_some()
}

/// Whether a link of this kind is used now.
async fn is_used(tx: &dyn Transaction, link: SecretHash, kind: LinkKind) -> bool {
    tx.use_link(link, kind).await.unwrap().is_some()
}

#[tokio::test]
async fn of_two_concurrent_submissions_of_a_form_one_acts_and_its_result_is_shown_once() {
    let fixture = Fixture::new().await;
    for commits in [true, false] {
        let (session, form) = (hash(), id());
        let (other_session, other_form) = ((hash(), form), (session, id()));
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(first.store_flash(session, form, Some(vec![1])).await.unwrap());
        let (is_new, ()) = join!(
            second.store_flash(session, form, Some(vec![2])),
            fixture.end_once_it_blocks_another(first, commits)
        );
        assert_eq!(is_new.unwrap(), !commits);
        for (session, form) in [other_session, other_form] {
            assert!(second.store_flash(session, form, Some(vec![3])).await.unwrap());
        }
        second.commit().await.unwrap();

        let content = Some(vec![if commits { 1 } else { 2 }]);
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert_eq!(first.take_flash(session, id()).await.unwrap(), None);
        assert_eq!(first.take_flash(session, form).await.unwrap(), content);
        let (taken, ()) = join!(
            second.take_flash(session, form),
            fixture.end_once_it_blocks_another(first, commits)
        );
        assert_eq!(taken.unwrap(), if commits { None } else { content });
        // The form stays known.
        assert!(!second.store_flash(session, form, None).await.unwrap());
        for (session, form) in [other_session, other_form] {
            assert_eq!(second.take_flash(session, form).await.unwrap(), Some(vec![3]));
        }
        // What is shown may come after the record, once.
        let claimed = id();
        for (content, is_stored) in [
            (None, true),
            (Some(vec![4]), true),
            (Some(vec![5]), false),
            (None, false),
        ] {
            let stored = second.store_flash(session, claimed, content).await.unwrap();
            assert_eq!(stored, is_stored);
        }
        assert_eq!(second.take_flash(session, claimed).await.unwrap(), Some(vec![4]));
    }
}

#[tokio::test]
async fn a_link_that_is_replaced_while_it_is_used_still_works() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let kind = LinkKind::PasswordReset;
    let hash = stored_link(&fixture, seller, kind).await;
    let (newer, reader) = (fixture.begin().await, fixture.begin().await);
    newer.lock_seller(seller).await.unwrap();
    add_link(&*newer, seller, kind).await;
    let (used, ()) = join!(
        is_used(&*reader, hash, kind),
        fixture.end_once_it_blocks_another(newer, true)
    );
    assert!(used);
}

#[tokio::test]
async fn a_link_works_once_and_the_later_of_two_concurrent_ones_replaces_the_other() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let kind = LinkKind::SignIn;
    for commits in [true, false] {
        let hash = stored_link(&fixture, seller, kind).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(!is_used(&*first, hash, LinkKind::PasswordReset).await);
        assert!(is_used(&*first, hash, kind).await);
        let (used, ()) = join!(
            is_used(&*second, hash, kind),
            fixture.end_once_it_blocks_another(first, commits)
        );
        assert_eq!(used, !commits);
    }
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let earlier = add_link(&*first, seller, kind).await;
    let (later, ()) = join!(
        add_link(&*second, seller, kind),
        fixture.end_once_it_blocks_another(first, true)
    );
    second.commit().await.unwrap();
    let panel = fixture.database.panel();
    assert!(panel.link(earlier).await.unwrap().is_none());
    assert!(panel.link(later).await.unwrap().is_some());
}

#[tokio::test]
async fn a_newer_link_by_mail_leaves_the_older_ones_and_each_works_once() {
    let (fixture, clock) = Fixture::frozen().await;
    let (seller, kind) = (fixture.seller().await, LinkKind::PasswordReset);
    let (other, mut others, mut links) = (fixture.seller().await, Vec::new(), Vec::new());
    // Of another kind; no newer one replaces it.
    links.push(stored_link(&fixture, seller, LinkKind::Invitation).await);
    for _ in 0..3 {
        others.push(stored_link(&fixture, other, kind).await);
        links.push(stored_link(&fixture, seller, kind).await);
    }
    let panel = fixture.database.panel();
    let invitation = links.remove(0);
    for link in links.iter().chain(&others).chain([&invitation]) {
        assert!(panel.link(*link).await.unwrap().is_some());
    }
    for (n, commits) in [(0, false), (0, true), (2, true)] {
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(!is_used(&*first, links[n], LinkKind::Invitation).await);
        assert!(is_used(&*first, links[n], kind).await);
        let (used, ()) = join!(
            is_used(&*second, links[n], kind),
            fixture.end_once_it_blocks_another(first, commits)
        );
        assert_eq!(used, !commits);
    }
    assert!(panel.link(links[1]).await.unwrap().is_some());
    fixture
        .tx(async |tx| tx.end_sessions(seller, None).await.unwrap())
        .await;
    assert!(panel.link(links[1]).await.unwrap().is_none());
    for link in &others {
        assert!(panel.link(*link).await.unwrap().is_some());
    }
    let is_dead = async |link: SecretHash| {
        let tx = fixture.begin().await;
        panel.link(link).await.unwrap().is_none() && !is_used(&*tx, link, kind).await
    };
    let closure = format!("update sellers set closed_at = api_now() where id = '{other}'");
    fixture.tamper(&closure).await;
    for link in others {
        assert!(is_dead(link).await);
    }
    // An expired one is not kept.
    let last = stored_link(&fixture, seller, kind).await;
    assert!(!is_dead(last).await);
    clock.advance(kind.lifetime()).await;
    assert!(is_dead(last).await);
    stored_link(&fixture, seller, kind).await;
    let kept = format!("earlier_links where seller_id = '{seller}'");
    assert_eq!(fixture.rows_of(&kept).await, 0);
}

/// The account is locked before its links, here too: with the link alone, the change would wait for the link
/// and the reset for the account.
#[tokio::test]
async fn a_reset_takes_precedence_over_a_change_that_was_compared_before() {
    for commits in [true, false] {
        let fixture = Fixture::new().await;
        let member = member(&fixture).await;
        // All of whose sessions last.
        fixture.seller().await;
        let kind = LinkKind::PasswordReset;
        let reset = stored_link(&fixture, member.0, kind).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(is_used(&*first, reset, kind).await);
        let continuation = async {
            fixture.wait_for_blocked_session().await;
            first.set_password(member.0, password("reset")).await.unwrap();
            first.end_sessions(member.0, None).await.unwrap();
            if commits {
                first.commit().await.unwrap();
            }
        };
        let (changed, ()) = join!(change(&*second, member), continuation);
        let stored = if commits {
            assert!(matches!(refused(changed), LinkRefusal::SessionEnded));
            "reset"
        } else {
            changed.unwrap();
            second.commit().await.unwrap();
            "changed"
        };
        let now = fixture.database.panel().password(member.0).await.unwrap();
        assert_eq!(now, Some(password(stored)));
    }
}

#[tokio::test]
async fn of_two_changes_compared_with_the_same_password_the_first_takes_effect() {
    let fixture = Fixture::new().await;
    let member = member(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    change(&*first, member).await.unwrap();
    let ending = fixture.end_once_it_blocks_another(first, true);
    let (changed, ()) = join!(change(&*second, member), ending);
    assert!(matches!(refused(changed), LinkRefusal::WrongPassword));
}

#[tokio::test]
async fn a_session_that_a_link_opens_does_not_outlive_a_change_of_the_password() {
    let fixture = Fixture::new().await;
    for link_first in [true, false] {
        let member = member(&fixture).await;
        let (link, opened) = (stored_link(&fixture, member.0, LinkKind::SignIn).await, hash());
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let now = first.now();
        let enter = async |tx: &dyn Transaction| sign_in_by_link(tx, link, opened, hash(), HOME, now).await;
        if link_first {
            enter(&*first).await.unwrap();
            let ending = fixture.end_once_it_blocks_another(first, true);
            let (changed, ()) = join!(change(&*second, member), ending);
            changed.unwrap();
            second.commit().await.unwrap();
        } else {
            change(&*first, member).await.unwrap();
            let (entered, ()) = join!(enter(&*second), fixture.end_once_it_blocks_another(first, true));
            assert!(matches!(refused(entered), LinkRefusal::DeadLink));
        }
        assert!(signed_in(&fixture, member.1).await && !signed_in(&fixture, opened).await);
    }
}

#[tokio::test]
async fn ending_all_sessions_ends_one_that_a_link_is_opening() {
    let fixture = Fixture::new().await;
    let (seller, own) = member(&fixture).await;
    let (link, opened) = (stored_link(&fixture, seller, LinkKind::SignIn).await, hash());
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    sign_in_by_link(&*first, link, opened, hash(), HOME, first.now())
        .await
        .unwrap();
    let (ended, ()) = join!(
        second.end_sessions(seller, None),
        fixture.end_once_it_blocks_another(first, true)
    );
    ended.unwrap();
    second.commit().await.unwrap();
    assert!(!signed_in(&fixture, opened).await && !signed_in(&fixture, own).await);
}
