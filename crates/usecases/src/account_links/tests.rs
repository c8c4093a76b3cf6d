//! Links and passwords, over mocks.

use oauth::Count;

use super::*;
use crate::MockTransaction;
use crate::test_support::{OPERATOR, by, chance, knowing_sellers, logging, now, refusal, sent_form};

const URL: &str = "https://api.example";
const INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// The account's newest link of any kind was made this long ago, and the next mail has this place in the
/// hour.
fn mailed_before(tx: &mut MockTransaction, ago: Option<TimeDelta>, place: u64) {
    tx.expect_newest_link_expiry()
        .returning(move |_, kind| Ok(ago.map(|ago| now() - ago + kind.lifetime())));
    let count = Count {
        place,
        resets_at: now(),
        counted_at: now(),
    };
    tx.expect_count_action()
        .withf(|limiter, subject| *limiter == Limiter::LinkMails && *subject == Subject::seller(by().seller))
        .returning(move |_, _| Ok(count));
}

fn hash(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

fn passwords() -> (PasswordHash, PasswordHash) {
    (hash("old"), hash("new"))
}

#[tokio::test]
async fn a_changed_password_ends_every_other_session_unless_something_changed_meanwhile() {
    for (alive, fits, current, refused) in [
        (true, true, Some("old"), None),
        (false, true, Some("old"), Some(LinkRefusal::SessionEnded)),
        (false, false, Some("new"), Some(LinkRefusal::SessionEnded)),
        (true, true, Some("new"), Some(LinkRefusal::WrongPassword)),
        (true, true, None, Some(LinkRefusal::WrongPassword)),
        (true, false, Some("old"), Some(LinkRefusal::WrongPassword)),
    ] {
        let times = usize::from(refused.is_none());
        let mut tx = knowing_sellers(logging(times, Action::PasswordChanged), false);
        tx.expect_has_session()
            .withf(|hash| *hash == sent_form().session)
            .returning(move |_| Ok(alive));
        tx.expect_password_hash()
            .returning(move |_| Ok(current.map(hash)));
        tx.expect_set_password()
            .times(times)
            .withf(|_, password| *password == hash("new"))
            .returning(|_, _| Ok(()));
        tx.expect_end_sessions()
            .times(times)
            .withf(|_, but| *but == Some(sent_form().session))
            .returning(|_, _| Ok(()));
        let passwords = passwords();
        let change = fits.then_some(&passwords);
        let changed = change_password(&tx, by(), sent_form().session, change).await;
        match refused {
            None => changed.unwrap(),
            Some(expected) => assert_eq!(refusal(changed), expected),
        }
    }
}

#[tokio::test]
async fn an_account_gets_a_mail_in_five_minutes_and_five_in_an_hour() {
    let minutes = TimeDelta::minutes;
    for (ago, place, interval, mails) in [
        (None, 5, INTERVAL, 1),
        (None, 6, INTERVAL, 0),
        (Some(minutes(5)), 5, INTERVAL, 1),
        (Some(minutes(5)), 6, INTERVAL, 0),
        (Some(minutes(5) - TimeDelta::seconds(1)), 1, INTERVAL, 0),
        // Expired, or without bounds.
        (Some(minutes(60)), 1, minutes(61), 1),
        (Some(minutes(1)), 6, TimeDelta::zero(), 1),
    ] {
        let mut tx = knowing_sellers(logging(mails, Action::ResetRequested), false);
        mailed_before(&mut tx, ago, place);
        tx.expect_add_link()
            .times(mails)
            .withf(|link| link.expires_at == now() + TimeDelta::hours(1))
            .returning(|_| Ok(()));
        tx.expect_queue_account_mail().times(mails).returning(|_| Ok(()));
        send_reset(&tx, &chance(), by(), URL, interval, now())
            .await
            .unwrap();
    }
    let invited = async |ago, place| {
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        mailed_before(&mut tx, ago, place);
        tx.expect_password_hash().returning(|_| Ok(None));
        invite(&tx, &chance(), OPERATOR, by().seller, URL, INTERVAL, now()).await
    };
    for ago in [None, Some(TimeDelta::days(7))] {
        assert_eq!(refusal(invited(ago, 6).await), NotInvited::TooManyMails);
    }
    let link = invited(Some(minutes(1)), 1).await.unwrap();
    let expires_at = now() - minutes(1) + LinkKind::Invitation.lifetime();
    assert_eq!(
        link,
        MailedLink {
            expires_at,
            is_new: false
        }
    );
}
