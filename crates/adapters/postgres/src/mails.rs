//! Mails to buyers and to sellers: queued in a transaction, leased by workers, their outcomes recorded.

use accounts::{AccountMail, LinkKind};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{DueMail, MailId, MailQueue, MailStep, StoreError};
use orders::{GivenUpMail, MailDirectory, ShipmentMail};
use uuid::Uuid;

use crate::accounts::all_links;
use crate::connection::pool::Autocommit;
use crate::orders::{order_number, parse_carrier, parse_tracking_number};
use crate::sealing::Sealing;
use crate::searched::Searched;
use crate::sql::{microseconds, readable, row, sql};
use crate::unit_of_work::{Write, changing};

/// A mail's next step for SQL: a word, and the microseconds until the next attempt.
fn step_columns(next: MailStep) -> (&'static str, Option<i64>) {
    match next {
        MailStep::Sent => ("sent", None),
        MailStep::Dead => ("dead", None),
        MailStep::Retry(delay) => ("again", Some(microseconds(delay))),
    }
}

fn attempt(attempts: i32) -> Result<u32, String> {
    u32::try_from(attempts).map_err(|_| format!("attempts {attempts}"))
}

row! {
    struct ShipmentRow {
        id: Uuid,
        order_id: Uuid,
        order_number: String,
        recipient: String,
        recipient_name: Option<String>,
        carrier: String,
        tracking_number: String,
        attempts: i32,
    }
}

impl ShipmentRow {
    fn leased(self, fence: Uuid) -> Result<DueMail<ShipmentMail>, StoreError> {
        let id = MailId::from(self.id);
        let corrupt = |reason: String| StoreError::corrupt("mails", id, reason);
        let mail = ShipmentMail {
            id,
            order: self.order_id.into(),
            number: order_number(self.order_number).map_err(corrupt)?,
            to: self.recipient,
            name: self.recipient_name,
            carrier: parse_carrier(&self.carrier).map_err(corrupt)?,
            tracking_number: parse_tracking_number(self.tracking_number).map_err(corrupt)?,
        };
        let attempt = attempt(self.attempts).map_err(corrupt)?;
        Ok(DueMail { mail, attempt, fence })
    }
}

/// Mails to buyers. Each call is one autocommitted statement.
pub(crate) struct ShipmentMails {
    pub(crate) statements: Autocommit,
    pub(crate) searched: Searched,
}

#[async_trait]
impl MailQueue<ShipmentMail> for ShipmentMails {
    /// The longest waiting first.
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail<ShipmentMail>>, StoreError> {
        let lease = sql!((DateTime<Utc>, Option<ShipmentRow>):
            "with clock as materialized (select api_now() as at), \
             due as materialized (select id, due_at from mails where due_at >= (select least(", self.searched.next(),
            ", at) - interval '1 second' from clock) and due_at <= (select at from clock) order by due_at limit ",
            i64::from(limit), " for no key update skip locked), \
             leased as (update mails m set attempts = attempts + 1, fence = ", fence, ", due_at = (select at from clock) + ",
            microseconds(lease), " * interval '1 microsecond' from due where m.id = due.id \
               returning m.id, m.order_id, m.order_number, m.recipient, m.recipient_name, m.carrier, m.tracking_number, m.attempts) \
             select coalesce((select min(due_at) from due), clock.at), l.* from clock left join leased l on true");
        let rows = self.statements.rows(lease).await?;
        Ok(readable(self.searched.leased(rows).map(|row| row.leased(fence))))
    }

    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError> {
        let (next, delay) = step_columns(next);
        let record = sql!((): "update mails set fence = null, sent_at = case ", next,
            " when 'sent' then clock.at end, dead_at = case ", next,
            " when 'dead' then clock.at end, due_at = clock.at + ", delay,
            " * interval '1 microsecond' from (select api_now() as at) clock where id = ", mail.uuid(),
            " and fence = ", fence, "");
        // No row: the lease was lost, or the buyer was erased.
        self.statements.execute(record).await?;
        Ok(())
    }
}

row! {
    struct GivenUpRow {
        id: Uuid,
        order_id: Uuid,
        order_number: String,
        created_at: DateTime<Utc>,
        dead_at: DateTime<Utc>,
        attempts: i32,
    }
}

/// Mails to buyers that were given up.
#[async_trait]
impl MailDirectory for Autocommit {
    async fn given_up(&self, before: Option<MailId>, limit: u16) -> Result<Vec<GivenUpMail>, StoreError> {
        let rows = sql!(GivenUpRow: "select id, order_id, order_number, created_at, dead_at, attempts from mails \
            where dead_at is not null and id < ", before.map_or(Uuid::max(), MailId::uuid), " order by id desc limit ",
            i64::from(limit), "");
        let mail = |row: GivenUpRow| {
            let corrupt = |reason: String| StoreError::corrupt("mails", row.id, reason);
            Ok(GivenUpMail {
                id: row.id.into(),
                order: row.order_id.into(),
                number: order_number(row.order_number).map_err(corrupt)?,
                created_at: row.created_at,
                given_up_at: row.dead_at,
                attempts: attempt(row.attempts).map_err(corrupt)?,
            })
        };
        self.rows(rows).await?.into_iter().map(mail).collect()
    }
}

/// The write that queues a mail about an account, with its link sealed.
pub(crate) fn account_mail(mail: AccountMail, sealing: &Sealing) -> Result<Box<dyn Write>, StoreError> {
    let url = sealing.seal_link(mail.id.uuid(), &mail.url)?;
    let insert = sql!(():
        "insert into account_mails (id, seller_id, kind, recipient, recipient_name, url, expires_at) values (",
        mail.id.uuid(), ", ", mail.seller.uuid(), ", ", mail.kind.as_str(), ", ", mail.to, ", ", mail.name, ", ",
        url, ", ", mail.expires_at, ")");
    Ok(changing("account_mails", 1, insert))
}

row! {
    struct AccountRow {
        id: Uuid,
        seller_id: Uuid,
        kind: String,
        recipient: String,
        recipient_name: String,
        url: Option<Vec<u8>>,
        expires_at: DateTime<Utc>,
        attempts: i32,
    }
}

impl AccountRow {
    /// None if the mail was given up.
    fn leased(self, fence: Uuid, sealing: &Sealing) -> Result<Option<DueMail<AccountMail>>, StoreError> {
        let Some(url) = self.url else { return Ok(None) };
        let corrupt = |reason: String| StoreError::corrupt("account_mails", self.id, reason);
        let mail = AccountMail {
            id: self.id.into(),
            seller: self.seller_id.into(),
            kind: LinkKind::parse(&self.kind).ok_or_else(|| corrupt(format!("kind {:?}", self.kind)))?,
            to: self.recipient,
            name: self.recipient_name,
            url: sealing.open_link(self.id, &url)?,
            expires_at: self.expires_at,
        };
        let attempt = attempt(self.attempts).map_err(corrupt)?;
        Ok(Some(DueMail { mail, attempt, fence }))
    }
}

/// Mails about accounts. Each call is one autocommitted statement.
pub(crate) struct AccountMails {
    pub(crate) statements: Autocommit,
    pub(crate) sealing: Sealing,
    pub(crate) searched: Searched,
}

#[async_trait]
impl MailQueue<AccountMail> for AccountMails {
    /// The longest waiting first. Mails whose link is no longer valid are given up: it expired, was used, or ended with the use of
    /// another one. Twenty of those are passed at a time.
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail<AccountMail>>, StoreError> {
        let lease = sql!((DateTime<Utc>, Option<AccountRow>):
            "with clock as materialized (select api_now() as at), \
             due as materialized (select m.id, m.seller_id, m.kind, m.expires_at, m.due_at from account_mails m \
               where m.due_at >= (select least(", self.searched.next(), ", at) - interval '1 second' from clock) \
                 and m.due_at <= (select at from clock) order by m.due_at limit ", 20 + i64::from(limit),
            concat!(" for no key update skip locked), \
             judged as materialized (select d.id, d.due_at, exists (select from ", all_links!(), " l join sellers s on s.id = l.seller_id \
                 where l.seller_id = d.seller_id and l.kind = d.kind and l.expires_at = d.expires_at \
                   and l.expires_at > (select at from clock) and s.closed_at is null) as is_worth_sending from due d), \
             chosen as (select id, is_worth_sending, row_number() over (partition by is_worth_sending order by due_at) as turn \
               from judged), \
             leased as (update account_mails m set attempts = attempts + j.is_worth_sending::integer, \
               fence = case when j.is_worth_sending then "), fence,
            " end, due_at = case when j.is_worth_sending then (select at from clock) + ", microseconds(lease),
            " * interval '1 microsecond' end, dead_at = case when not j.is_worth_sending then (select at from clock) end, \
               url = case when j.is_worth_sending then m.url end from chosen j \
             where m.id = j.id and (not j.is_worth_sending or j.turn <= ", i64::from(limit), ") \
               returning m.id, m.seller_id, m.kind, m.recipient, m.recipient_name, m.url, m.expires_at, m.attempts) \
             select coalesce((select min(due_at) from due), clock.at), l.* from clock left join leased l on true");
        let rows = self.statements.rows(lease).await?;
        let leased = self.searched.leased(rows);
        let leased = readable(leased.map(|row| row.leased(fence, &self.sealing)));
        Ok(leased.into_iter().flatten().collect())
    }

    /// The link is deleted once it was sent or given up.
    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError> {
        let (next, delay) = step_columns(next);
        let record = sql!((): "update account_mails set fence = null, sent_at = case ", next,
            " when 'sent' then clock.at end, dead_at = case ", next,
            " when 'dead' then clock.at end, url = case when ", next, " = 'again' then url end, due_at = clock.at + ", delay,
            " * interval '1 microsecond' from (select api_now() as at) clock where id = ", mail.uuid(),
            " and fence = ", fence, "");
        // No row: the lease was lost.
        self.statements.execute(record).await?;
        Ok(())
    }
}
