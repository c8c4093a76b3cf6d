//! A worker sends the mails that are due.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Randomness, StoreError};
use orders::{DueMail, MailFate, MailQueue, Mailer};

/// How many mails are leased at a time.
const BATCH: u16 = 20;
/// How long a lease lasts: longer than one sending can take, since a batch is sent at once.
const LEASE: TimeDelta = TimeDelta::minutes(5);

/// The ports that sending needs.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    /// Where mails wait.
    pub queue: &'a dyn MailQueue,
    /// Who sends them.
    pub mailer: &'a dyn Mailer,
    /// For the lease's fence.
    pub randomness: &'a dyn Randomness,
}

impl std::fmt::Debug for Post<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Post")
    }
}

/// Sends a batch, all at once so that a slow server does not let the leases run out, and returns what became of each; empty when nothing is due.
pub async fn send_mails(post: Post<'_>) -> Result<Vec<MailFate>, StoreError> {
    let due = post
        .queue
        .lease_mails(post.randomness.uuid(), BATCH, LEASE)
        .await?;
    let sent = join_all(due.iter().map(|mail| send_one(post, mail))).await;
    sent.into_iter().collect()
}

async fn send_one(post: Post<'_>, due: &DueMail) -> Result<MailFate, StoreError> {
    let outcome = post.mailer.send(&due.mail).await;
    let fate = MailFate::after(due.attempt, &outcome);
    post.queue.settle_mail(due.mail.id, due.fence, fate).await?;
    Ok(fate)
}

#[cfg(test)]
mod tests {
    use orders::{Carrier, MockMailQueue, MockMailer, OrderNumber, SendError, ShipmentMail, TrackingNumber};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::chance;

    fn due(id: u128) -> DueMail {
        let mail = ShipmentMail {
            id: Uuid::from_u128(id).into(),
            order: Uuid::nil().into(),
            number: OrderNumber::new("A-1".to_owned()).unwrap(),
            to: "buyer@example.com".to_owned(),
            name: None,
            carrier: Carrier::Dpd,
            tracking_number: TrackingNumber::new("ABCD".to_owned()).unwrap(),
        };
        DueMail {
            mail,
            attempt: 1,
            fence: Uuid::nil(),
        }
    }

    #[tokio::test]
    async fn one_mail_that_fails_does_not_hold_back_the_next() {
        let (mut queue, mut mailer) = (MockMailQueue::new(), MockMailer::new());
        queue
            .expect_lease_mails()
            .once()
            .returning(|_, _, _| Ok(vec![due(1), due(2)]));
        queue.expect_settle_mail().times(2).returning(|_, _, _| Ok(()));
        mailer
            .expect_send()
            .returning(|mail| match mail.id.uuid().as_u128() {
                1 => Err(SendError::Transient("busy".into())),
                _ => Ok(()),
            });
        let post = Post {
            queue: &queue,
            mailer: &mailer,
            randomness: &chance(),
        };
        let fates = send_mails(post).await.unwrap();
        assert_eq!(fates, [MailFate::Retry(TimeDelta::minutes(1)), MailFate::Sent]);
    }
}
