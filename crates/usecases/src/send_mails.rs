//! A worker sends due mails of one kind; an operator has one that was given up sent again.

use accounts::{AccountStore, Action};
use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{DueMail, Mail, MailId, MailQueue, MailStep, Mailer, Randomness, StoreError};
use orders::OrderStore;

use crate::ActingOperator;

/// How many mails are leased at a time.
const BATCH: u16 = 20;
/// How long a lease lasts: longer than one mail can take, since a batch is sent concurrently.
const LEASE: TimeDelta = TimeDelta::minutes(5);

pub struct MailSending<'a, M> {
    pub queue: &'a dyn MailQueue<M>,
    pub mailer: &'a dyn Mailer<M>,
    /// For the lease's fencing token.
    pub randomness: &'a dyn Randomness,
}

/// The outcome of a mail, if it could be recorded.
pub type Recorded = Result<(MailId, MailStep), StoreError>;

/// Sends a batch concurrently, so that a slow server does not let leases expire. Returns the outcome of each mail.
pub async fn send_mails<M: Mail>(sending: MailSending<'_, M>) -> Result<Vec<Recorded>, StoreError> {
    let due = sending
        .queue
        .lease_mails(sending.randomness.uuid(), BATCH, LEASE)
        .await?;
    Ok(join_all(due.iter().map(|mail| send_one(&sending, mail))).await)
}

async fn send_one<M: Mail>(sending: &MailSending<'_, M>, due: &DueMail<M>) -> Recorded {
    let outcome = sending.mailer.send(&due.mail).await;
    let next = MailStep::after(due.attempt, &outcome);
    sending.queue.record_step(due.mail.id(), due.fence, next).await?;
    Ok((due.mail.id(), next))
}

/// Queues a buyer's mail that was given up again; false if there is no such mail.
pub async fn send_again(
    orders: &dyn OrderStore,
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
    use kernel::{MockMailQueue, MockMailer, SendError};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::chance;

    #[derive(Debug)]
    struct Note(u128);

    impl Mail for Note {
        fn id(&self) -> MailId {
            Uuid::from_u128(self.0).into()
        }
    }

    fn due(id: u128) -> DueMail<Note> {
        DueMail {
            mail: Note(id),
            attempt: 1,
            fence: Uuid::nil(),
        }
    }

    #[tokio::test]
    async fn a_failed_mail_or_record_does_not_hide_the_others() {
        let (mut queue, mut mailer) = (MockMailQueue::<Note>::new(), MockMailer::<Note>::new());
        queue
            .expect_lease_mails()
            .once()
            .returning(|_, _, _| Ok(vec![due(1), due(2), due(3)]));
        queue
            .expect_record_step()
            .times(3)
            .returning(|mail, _, _| match mail.uuid().as_u128() {
                3 => Err(StoreError::Unavailable("away".into())),
                _ => Ok(()),
            });
        mailer
            .expect_send()
            .returning(|mail| match mail.id().uuid().as_u128() {
                1 => Err(SendError::Transient("busy".into())),
                _ => Ok(()),
            });
        let sending = MailSending {
            queue: &queue,
            mailer: &mailer,
            randomness: &chance(),
        };
        let steps = send_mails(sending).await.unwrap();
        let id = |id| MailId::from(Uuid::from_u128(id));
        let retried = MailStep::Retry(TimeDelta::minutes(1));
        let recorded: Vec<_> = steps.into_iter().map(Result::ok).collect();
        let expected = [Some((id(1), retried)), Some((id(2), MailStep::Sent)), None];
        assert_eq!(recorded, expected);
    }
}
