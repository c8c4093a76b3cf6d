//! A worker sends due mails of one kind; an operator requeues one that was given up.

use accounts::{AccountStore, Action};
use chrono::TimeDelta;
use kernel::{DueMail, Mail, MailId, MailQueue, MailStep, Mailer, SendError, StoreError};
use orders::OrderStore;

use crate::{Acting, ActingOperator, Announcement};

/// How long a leased mail waits for its attempt to begin.
pub const LEASE: TimeDelta = TimeDelta::minutes(1);
/// How long an attempt has: longer than one mail can take, with the longest timeouts for the connection and
/// for the server's acceptance, and five minutes for recording.
const ATTEMPT: TimeDelta = TimeDelta::minutes(25);

/// Sends a leased mail, records its step, and returns that with the failure; none if the lease was lost. Both calls of the store are retried while the
/// pause that `patience` made for them returns true: an outage must neither delay the mail by a whole attempt nor send
/// it twice.
pub async fn send_mail<M: Mail, W: Fn() -> P, P: Future<Output = bool>>(
    queue: &dyn MailQueue<M>,
    mailer: &dyn Mailer<M>,
    due: &DueMail<M>,
    patience: impl Fn() -> W,
) -> Result<Option<(MailStep, Option<SendError>)>, StoreError> {
    if !retried(|| queue.begin_attempt(due, ATTEMPT), patience()).await? {
        return Ok(None);
    }
    let sent = mailer.send(&due.mail).await;
    let next = MailStep::after(due.attempt, &sent);
    retried(|| queue.record_step(due.mail.id(), due.fence, next), patience()).await?;
    Ok(Some((next, sent.err())))
}

async fn retried<T, F, P>(record: impl Fn() -> F, pause: impl Fn() -> P) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
    P: Future<Output = bool>,
{
    loop {
        let recorded = record().await;
        if recorded.is_ok() || !pause().await {
            return recorded;
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

    use kernel::{MockMailQueue, MockMailer};
    use uuid::Uuid;

    use super::*;

    #[derive(Debug)]
    struct Note(u128);

    impl Mail for Note {
        fn id(&self) -> MailId {
            Uuid::from_u128(self.0).into()
        }
    }

    fn due() -> DueMail<Note> {
        DueMail {
            mail: Note(1),
            attempt: 1,
            fence: Uuid::nil(),
        }
    }

    #[tokio::test]
    async fn an_attempt_is_made_once_and_recorded_until_that_succeeds() {
        let retried = MailStep::Retry(TimeDelta::minutes(1));
        // The failures of the store before it counts the attempt and before it records, and how many pauses the
        // worker makes each time.
        for (begins, failures, patience, is_busy, recorded) in [
            (0, 0, 0, false, Some(MailStep::Sent)),
            (0, 0, 0, true, Some(retried)),
            (3, 3, 3, false, Some(MailStep::Sent)),
            (0, 3, 2, false, None),
            (3, 0, 2, false, None),
        ] {
            let (mut queue, mut mailer) = (MockMailQueue::<Note>::new(), MockMailer::<Note>::new());
            let [begun, stored] = [0; 2].map(AtomicUsize::new);
            queue
                .expect_begin_attempt()
                .withf(|_, lease| *lease == ATTEMPT)
                .returning(move |_, _| {
                    if begun.fetch_add(1, Relaxed) < begins {
                        return Err(StoreError::Unavailable("away".into()));
                    }
                    Ok(true)
                });
            queue.expect_record_step().returning(move |_, _, _| {
                if stored.fetch_add(1, Relaxed) < failures {
                    return Err(StoreError::Unavailable("away".into()));
                }
                Ok(())
            });
            mailer
                .expect_send()
                .times(usize::from(begins <= patience))
                .returning(move |_| {
                    if is_busy {
                        return Err(SendError::Transient("busy".into()));
                    }
                    Ok(())
                });
            let pauses = || {
                let paused = AtomicUsize::new(0);
                move || std::future::ready(paused.fetch_add(1, Relaxed) < patience)
            };
            let sent = send_mail(&queue, &mailer, &due(), pauses).await;
            let next = sent.ok().flatten().map(|(next, _)| next);
            assert_eq!(next, recorded, "{begins} {failures} {patience}");
        }
    }

    #[tokio::test]
    async fn a_mail_whose_lease_was_lost_is_not_sent() {
        let (mut queue, mailer) = (MockMailQueue::<Note>::new(), MockMailer::<Note>::new());
        queue.expect_begin_attempt().once().returning(|_, _| Ok(false));
        let sent = send_mail(&queue, &mailer, &due(), || || std::future::ready(false)).await;
        assert!(sent.unwrap().is_none());
    }
}
