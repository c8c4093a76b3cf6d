//! Mails to buyers: queued in a transaction, leased and settled by workers.

use async_trait::async_trait;
use chrono::TimeDelta;
use diesel::{
    Queryable,
    sql_types::{BigInt, Integer, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{DueMail, MailFate, MailId, MailQueue, StoreError};
use orders::{BuyerNotifier, OrderId, ShipmentMail};
use uuid::Uuid;

use super::words;
use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    queue::{microseconds, settle_mail, sound},
    reads::Reads,
    statement::statement,
    transaction::Tx,
};

struct Insert<'a> {
    id: Uuid,
    order: Uuid,
    number: &'a str,
    recipient: &'a str,
    name: Option<&'a str>,
    carrier: &'static str,
    tracking_number: &'a str,
}

statement!(Insert<'_> => ():
    "insert into mails (id, order_id, order_number, recipient, recipient_name, carrier, tracking_number) values (", id: SqlUuid,
    ", ", order: SqlUuid,
    ", ", number: Text,
    ", ", recipient: Text,
    ", ", name: Nullable<Text>,
    ", ", carrier: Text,
    ", ", tracking_number: Text, ")");

struct Delete {
    order: Uuid,
}

statement!(Delete => (): "delete from mails where order_id = ", order: SqlUuid, "");

#[async_trait]
impl BuyerNotifier for Tx {
    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError> {
        self.write_later(Box::new(Queued(mail)));
        Ok(())
    }

    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError> {
        self.write_later(Box::new(Forgotten(order)));
        Ok(())
    }
}

struct Queued(ShipmentMail);

#[async_trait]
impl Write for Queued {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let mail = &self.0;
        let insert = Insert {
            id: mail.id.uuid(),
            order: mail.order.uuid(),
            number: mail.number.as_str(),
            recipient: &mail.to,
            name: mail.name.as_deref(),
            carrier: mail.carrier.as_str(),
            tracking_number: mail.tracking_number.as_str(),
        };
        expect_rows(
            "mails",
            insert.execute(&mut connection).await.map_err(store_error)?,
            1,
        )
    }
}

struct Forgotten(OrderId);

#[async_trait]
impl Write for Forgotten {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let delete = Delete { order: self.0.uuid() };
        delete.execute(&mut connection).await.map_err(store_error)?;
        Ok(())
    }
}

/// Leases mails that are due, the longest waiting first.
struct Lease {
    fence: Uuid,
    limit: i64,
    microseconds: i64,
}

statement!(Lease => (SqlUuid, SqlUuid, Text, Text, Nullable<Text>, Text, Text, Integer):
    "with clock as materialized (select api_now() as at), \
     due as materialized (select id from mails where due_at <= (select at from clock) order by due_at limit ", limit: BigInt,
    " for no key update skip locked) \
     update mails m set attempts = attempts + 1, fence = ", fence: SqlUuid,
    ", due_at = (select at from clock) + ", microseconds: BigInt,
    " * interval '1 microsecond' from due where m.id = due.id \
     returning m.id, m.order_id, m.order_number, m.recipient, m.recipient_name, m.carrier, m.tracking_number, m.attempts");

#[derive(Queryable)]
struct MailRow {
    id: Uuid,
    order_id: Uuid,
    order_number: String,
    recipient: String,
    recipient_name: Option<String>,
    carrier: String,
    tracking_number: String,
    attempts: i32,
}

impl MailRow {
    fn leased(self, fence: Uuid) -> Result<DueMail<ShipmentMail>, StoreError> {
        let id = MailId::from(self.id);
        let corrupt = |reason: String| StoreError::corrupt("mails", id, reason);
        let mail = ShipmentMail {
            id,
            order: self.order_id.into(),
            number: words::order_number(self.order_number).map_err(corrupt)?,
            to: self.recipient,
            name: self.recipient_name,
            carrier: words::carrier(&self.carrier).map_err(corrupt)?,
            tracking_number: words::tracking_number(self.tracking_number).map_err(corrupt)?,
        };
        let attempt =
            u32::try_from(self.attempts).map_err(|_| corrupt(format!("attempts {}", self.attempts)))?;
        Ok(DueMail { mail, attempt, fence })
    }
}

settle_mail!(Settle, "mails", "");

/// Each call is one statement with its own transaction.
pub(crate) struct Mails(pub(crate) Reads);

#[async_trait]
impl MailQueue<ShipmentMail> for Mails {
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail<ShipmentMail>>, StoreError> {
        let lease = Lease {
            fence,
            limit: limit.into(),
            microseconds: microseconds(lease),
        };
        let rows = self
            .0
            .ask(|lent| async move { lease.get_results::<MailRow>(&mut lent.connection()).await })
            .await?;
        Ok(sound(rows.into_iter().map(|row| row.leased(fence))))
    }

    async fn settle_mail(&self, mail: MailId, fence: Uuid, fate: MailFate) -> Result<(), StoreError> {
        let settle = Settle {
            id: mail.uuid(),
            fence,
            fate: fate.into(),
        };
        // No row: the lease was lost, or the buyer erased.
        self.0
            .ask(|lent| async move { settle.execute(&mut lent.connection()).await })
            .await?;
        Ok(())
    }
}
