//! The audit log: written with its deed, read newest first.

use std::net::IpAddr;

use chrono::TimeDelta;
use kernel::StoreError;
use oauth::{Action, Actor};
use uuid::Uuid;

use crate::support::{Fixture, id, instant};

#[tokio::test]
async fn what_is_noted_reads_back_newest_first() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let (seller, operator) = (id(), id());
    let notes: [(Actor, Option<IpAddr>, Action, String); 4] = [
        (
            Actor::Seller(seller.into()),
            Some("192.0.2.1".parse().unwrap()),
            Action::SignedIn,
            seller.to_string(),
        ),
        (
            Actor::Operator(operator),
            Some("2001:db8::1".parse().unwrap()),
            Action::SellerClosed,
            seller.to_string(),
        ),
        (
            Actor::CommandLine,
            None,
            Action::OperatorTokenRevoked,
            operator.to_string(),
        ),
        (
            Actor::Seller(seller.into()),
            None,
            Action::ApplicationDeleted,
            "psa_1".to_owned(),
        ),
    ];
    for (actor, address, action, subject) in &notes {
        let tx = fixture.begin().await;
        tx.note(*actor, *address, *action, subject).await.unwrap();
        tx.commit().await.unwrap();
        clock.advance(TimeDelta::milliseconds(1)).await;
    }
    let undone = fixture.begin().await;
    undone
        .note(Actor::CommandLine, None, Action::SellerRegistered, "x")
        .await
        .unwrap();
    drop(undone);

    let audit = fixture.database.audit();
    let all = audit.entries(None, None, 100).await.unwrap();
    let read = all
        .iter()
        .map(|entry| (entry.actor, entry.address, entry.action, entry.subject.clone()));
    let mut newest_first = notes.to_vec();
    newest_first.reverse();
    assert_eq!(read.collect::<Vec<_>>(), newest_first);
    assert_eq!(all[3].at, instant());
    for entry in &all {
        assert_eq!(entry.id.get_version_num(), 7);
        let (seconds, nanos) = entry.id.get_timestamp().unwrap().to_unix();
        let milliseconds = seconds * 1000 + u64::from(nanos) / 1_000_000;
        assert_eq!(i64::try_from(milliseconds).unwrap(), entry.at.timestamp_millis());
    }
    assert_eq!(audit.entries(None, None, 1).await.unwrap(), all[..1]);
    assert_eq!(audit.entries(None, Some(all[1].id), 100).await.unwrap(), all[2..]);

    let about = async |what: &str, before, limit| {
        let entries = audit.entries(Some(what.to_owned()), before, limit).await.unwrap();
        entries.iter().map(|entry| entry.action).collect::<Vec<_>>()
    };
    let of_seller = [Action::ApplicationDeleted, Action::SellerClosed, Action::SignedIn];
    assert_eq!(about(&seller.to_string(), None, 100).await, of_seller);
    assert_eq!(about(&seller.to_string(), None, 2).await, of_seller[..2]);
    assert_eq!(
        about(&seller.to_string(), Some(all[0].id), 100).await,
        of_seller[1..]
    );
    let of_operator = [Action::OperatorTokenRevoked, Action::SellerClosed];
    assert_eq!(about(&operator.to_string(), None, 100).await, of_operator);
    assert_eq!(about("psa_1", None, 100).await, [Action::ApplicationDeleted]);
    assert_eq!(about("x", None, 100).await, []);
}

#[tokio::test]
async fn the_notes_of_one_transaction_keep_their_order() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    for n in 0..50 {
        tx.note(Actor::CommandLine, None, Action::SellerRegistered, &n.to_string())
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let entries = fixture.database.audit().entries(None, None, 100).await.unwrap();
    // Within a microsecond chance decides.
    for pair in entries.windows(2) {
        let (later, earlier) = (pair[0].at, pair[1].at);
        assert!(later >= earlier);
    }
    assert_eq!(entries.len(), 50);
}

#[tokio::test]
async fn an_entry_that_cannot_be_is_named() {
    let fixture = Fixture::new().await;
    let (other, nowhere) = (Uuid::from_u128(1), Uuid::from_u128(2));
    fixture
        .tamper(&format!(
            "insert into audit_log (id, at, actor, action, address, subject) values \
               ('{other}', api_now(), 'command_line', 'seller.praised', null, 'x'), \
               ('{nowhere}', api_now(), 'command_line', 'seller.closed', 'nowhere', 'y')"
        ))
        .await;
    for (subject, id) in [("x", other), ("y", nowhere)] {
        let entries = fixture
            .database
            .audit()
            .entries(Some(subject.to_owned()), None, 10)
            .await;
        let StoreError::Corrupt { row, .. } = entries.unwrap_err() else {
            panic!("another failure")
        };
        assert_eq!((row.table, row.id), ("audit_log", id.to_string()));
    }
}
