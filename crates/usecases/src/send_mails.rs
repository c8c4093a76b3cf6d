//! A worker sends due mails of one kind; an operator requeues one that was given up.

use accounts::{AccountStore, Action};
use chrono::TimeDelta;
use kernel::{DueMail, Mail, MailId, MailQueue, MailStep, Mailer, Randomness, StoreError};
use orders::OrderStore;

use crate::{ActingOperator, Announcement};

/// How long a lease lasts: longer than one mail can take, with the longest timeouts for the connection and
/// for the server's acceptance, and five minutes for recording.
const LEASE: TimeDelta = TimeDelta::minutes(25);

/// Leases the mail that has waited longest, to be sent at once: its attempt has begun.
pub async fn lease_mail<M: Mail>(
    queue: &dyn MailQueue<M>,
    randomness: &dyn Randomness,
) -> Result<Option<DueMail<M>>, StoreError> {
    queue.lease_mail(randomness.uuid(), LEASE).await
}

/// Sends a leased mail and records its step. Recording is retried as long as `pause` returns true: a mail
/// that the server has accepted must not be sent again because the database was unavailable.
pub async fn send_mail<M: Mail, P: Future<Output = bool>>(
    queue: &dyn MailQueue<M>,
    mailer: &dyn Mailer<M>,
    due: &DueMail<M>,
    pause: impl Fn() -> P,
) -> Result<MailStep, StoreError> {
    let next = MailStep::after(due.attempt, &mailer.send(&due.mail).await);
    loop {
        match queue.record_step(due.mail.id(), due.fence, next).await {
            Ok(()) => return Ok(next),
            Err(error) => {
                if !pause().await {
                    return Err(error);
                }
            }
        }
    }
}

/// Queues a buyer's mail that was given up again; false if there is no such mail.
pub async fn send_again(
    orders: &dyn OrderStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    mail: MailId,
) -> Result<bool, StoreError> {
    let Some(order) = orders.requeue_mail(mail).await? else {
        return Ok(false);
    };
    by.log(accounts, Action::MailRequeued, order).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use kernel::{MockMailQueue, MockMailer, SendError};
    use uuid::Uuid;

    use super::*;

    #[derive(Debug)]
    struct Note(u128);

    impl Mail for Note {
        fn id(&self) -> MailId {
            Uuid::from_u128(self.0).into()
        }
    }

    #[tokio::test]
    async fn an_attempt_is_made_once_and_recorded_until_that_succeeds() {
        let retried = MailStep::Retry(TimeDelta::minutes(1));
        // The failures of the store before it records, and how many pauses the worker makes.
        for (failures, patience, is_busy, recorded) in [
            (0, 0, false, Some(MailStep::Sent)),
            (0, 0, true, Some(retried)),
            (3, 3, false, Some(MailStep::Sent)),
            (3, 2, false, None),
        ] {
            let (mut queue, mut mailer) = (MockMailQueue::<Note>::new(), MockMailer::<Note>::new());
            let (stored, paused) = (AtomicUsize::new(0), AtomicUsize::new(0));
            queue.expect_record_step().returning(move |_, _, _| {
                if stored.fetch_add(1, Relaxed) < failures {
                    return Err(StoreError::Unavailable("away".into()));
                }
                Ok(())
            });
            mailer.expect_send().once().returning(move |_| {
                if is_busy {
                    return Err(SendError::Transient("busy".into()));
                }
                Ok(())
            });
            let due = DueMail {
                mail: Note(1),
                attempt: 1,
                fence: Uuid::nil(),
            };
            let pause = async || paused.fetch_add(1, Relaxed) < patience;
            let next = send_mail(&queue, &mailer, &due, pause).await;
            assert_eq!(next.ok(), recorded, "{failures} {patience}");
        }
    }
}
