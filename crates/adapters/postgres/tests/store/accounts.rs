//! Accounts, applications, personal tokens and the audit log. The contract's tests show which names and
//! addresses are taken.

use accounts::{Action, Actor, AuditFilter, PasswordHash};
use chrono::TimeDelta;
use oauth::{Application, Subject};
use usecases::{Announcement, Transaction};

use crate::support::{Fixture, changed, id, instant, is_unexpected, new_seller};

#[tokio::test]
async fn an_account_is_found_by_the_letters_of_its_email_address_alone_and_closed_once() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("kim@example.com")).await.unwrap();
    tx.commit().await.unwrap();
    let panel = fixture.database.panel();
    let account = panel.account("KIM@example.com").await.unwrap().unwrap();
    assert_eq!((account.seller, account.password), (seller.clone(), None));
    // If its locale has these letters, the database folds them to `k` and `i`.
    for spelling in ["\u{212a}im@example.com", "k\u{130}m@example.com"] {
        assert_ne!(Subject::account(spelling), Subject::account(&seller.email));
        assert_eq!(panel.account(spelling).await.unwrap(), None, "{spelling}");
    }
    let password = || PasswordHash::new("$argon2id$x".to_owned());
    fixture
        .tx(async |tx| tx.set_password(seller.id, password()).await.unwrap())
        .await;
    assert_eq!(panel.password(seller.id).await.unwrap(), Some(password()));
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
async fn personal_tokens_are_listed_while_they_are_valid_and_revoked_once_by_their_owner() {
    let (fixture, clock) = Fixture::frozen().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(seller).await;
    let foreign = fixture.token(&application).await;
    let end = instant() + TimeDelta::hours(1);
    let [endless, ending] = fixture.personal_tokens(seller, [None, Some(end)]).await;
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
}

/// The command line's tests read the log by page, by subject and by time, which ids rise with.
#[tokio::test]
async fn audit_entries_keep_the_order_of_one_transaction() {
    let fixture = Fixture::new().await;
    let (actor, address) = (Actor::Operator(id()), "2001:db8::1".parse().ok());
    let write = async |tx: &dyn Transaction| {
        for n in 0..60 {
            let (action, subject) = (Action::SellerClosed, n.to_string());
            let logged = tx.log_action(actor, address, action, &subject, None);
            logged.await.unwrap();
        }
    };
    fixture.tx(write).await;
    let audit = fixture.database.audit();
    let entries = audit.entries(AuditFilter::default(), 100).await.unwrap();
    let read = entries.iter().rev();
    let read = read.map(|entry| (entry.actor, entry.address, entry.subject.clone()));
    assert!(read.eq((0..60).map(|n| (actor, address, n.to_string()))));
}
