//! Mails to buyers and to sellers: queued in a transaction, leased by workers, their outcomes recorded.

use accounts::{AccountMail, LinkKind};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{DueMail, MailId, MailQueue, MailStep, StoreError};
use orders::{GivenUpMail, ShipmentMail};
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::orders::{order_number, parse_carrier, parse_tracking_number};
use crate::schema::{account_mails, mails};
use crate::sealing::Sealing;
use crate::searched::{Found, Searched};
use crate::sql::{microseconds, readable};
use crate::statement::statements;
use crate::unit_of_work::{Write, changing};

statements! {
    "mails.sql";
    LEASE_SHIPMENT_MAIL: (Timestamptz, SqlUuid, BigInt) -> Found<ShipmentRow>;
    BEGIN_SHIPMENT_ATTEMPT: (Integer, BigInt, SqlUuid, SqlUuid);
    RECORD_SHIPMENT_STEP: (Text, Nullable<BigInt>, SqlUuid, SqlUuid);
    LEASE_ACCOUNT_MAIL: (Timestamptz, SqlUuid, BigInt) -> Found<AccountRow>;
    BEGIN_ACCOUNT_ATTEMPT: (Integer, BigInt, SqlUuid, SqlUuid);
    RECORD_ACCOUNT_STEP: (Text, Nullable<BigInt>, SqlUuid, SqlUuid);
}

/// A mail's next step for SQL: a word, and the microseconds until the next attempt.
fn step_columns(next: MailStep) -> (&'static str, Option<i64>) {
    match next {
        MailStep::Sent => ("sent", None),
        MailStep::Dead => ("dead", None),
        MailStep::Retry(delay) => ("again", Some(microseconds(delay))),
    }
}

fn count(attempts: i32) -> Result<u32, String> {
    u32::try_from(attempts).map_err(|_| format!("attempts {attempts}"))
}

#[derive(QueryableByName)]
#[diesel(table_name = mails)]
struct ShipmentRow {
    id: Uuid,
    order_id: Uuid,
    order_number: String,
    recipient: String,
    recipient_name: Option<String>,
    carrier: String,
    tracking_number: String,
    is_correction: bool,
    attempts: i32,
    #[diesel(sql_type = Bool)]
    waits: bool,
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
            is_correction: self.is_correction,
        };
        let attempt = count(self.attempts).map_err(corrupt)?.saturating_add(1);
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
    async fn lease_mail(
        &self,
        fence: Uuid,
        lease: TimeDelta,
    ) -> Result<Option<DueMail<ShipmentMail>>, StoreError> {
        loop {
            let lease = LEASE_SHIPMENT_MAIL.bind((self.searched.next(), fence, microseconds(lease)));
            let Some(row) = self.searched.leased(self.statements.row(lease).await?) else {
                return Ok(None);
            };
            if !row.waits
                && let Some(due) = readable(row.leased(fence))
            {
                return Ok(Some(due));
            }
        }
    }

    async fn begin_attempt(&self, due: &DueMail<ShipmentMail>, lease: TimeDelta) -> Result<bool, StoreError> {
        let (attempt, id) = (due.attempt.cast_signed(), due.mail.id.uuid());
        let begin = BEGIN_SHIPMENT_ATTEMPT.bind((attempt, microseconds(lease), id, due.fence));
        Ok(self.statements.execute(begin).await? > 0)
    }

    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError> {
        let (next, delay) = step_columns(next);
        let record = RECORD_SHIPMENT_STEP.bind((next, delay, mail.uuid(), fence));
        // No row: the lease was lost, or the buyer was erased.
        self.statements.execute(record).await?;
        Ok(())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = mails, check_for_backend(Pg))]
struct GivenUpRow {
    id: Uuid,
    order_id: Uuid,
    order_number: String,
    created_at: DateTime<Utc>,
    #[diesel(select_expression = mails::dead_at.assume_not_null())]
    dead_at: DateTime<Utc>,
    attempts: i32,
}

/// Looks up mails to buyers.
pub struct MailDirectory(pub(crate) Autocommit);

impl MailDirectory {
    /// Up to `limit` mails that were given up, older than `before`, newest first.
    pub async fn given_up(&self, before: Option<MailId>, limit: u16) -> Result<Vec<GivenUpMail>, StoreError> {
        let rows = mails::table
            .filter(mails::dead_at.is_not_null())
            .filter(mails::id.lt(before.map_or(Uuid::max(), MailId::uuid)))
            .order(mails::id.desc())
            .limit(i64::from(limit))
            .select(GivenUpRow::as_select());
        let mail = |row: GivenUpRow| {
            let corrupt = |reason: String| StoreError::corrupt("mails", row.id, reason);
            Ok(GivenUpMail {
                id: row.id.into(),
                order: row.order_id.into(),
                number: order_number(row.order_number).map_err(corrupt)?,
                created_at: row.created_at,
                given_up_at: row.dead_at,
                attempts: count(row.attempts).map_err(corrupt)?,
            })
        };
        self.0.rows(rows).await?.into_iter().map(mail).collect()
    }
}

/// The write that queues a mail about an account, with its link sealed.
pub(crate) fn account_mail(mail: AccountMail, sealing: &Sealing) -> Result<Write, StoreError> {
    let url = sealing.seal_link(mail.id.uuid(), &mail.url)?;
    let insert = diesel::insert_into(account_mails::table).values((
        account_mails::id.eq(mail.id.uuid()),
        account_mails::seller_id.eq(mail.seller.uuid()),
        account_mails::kind.eq(mail.kind.as_str()),
        account_mails::recipient.eq(mail.to),
        account_mails::recipient_name.eq(mail.name),
        account_mails::url.eq(url),
        account_mails::expires_at.eq(mail.expires_at),
    ));
    Ok(changing("account_mails", 1, insert))
}

#[derive(QueryableByName)]
#[diesel(table_name = account_mails)]
struct AccountRow {
    id: Uuid,
    seller_id: Uuid,
    kind: String,
    recipient: String,
    recipient_name: String,
    #[diesel(sql_type = Binary)]
    url: Vec<u8>,
    expires_at: DateTime<Utc>,
    attempts: i32,
}

impl AccountRow {
    fn leased(self, fence: Uuid, sealing: &Sealing) -> Result<DueMail<AccountMail>, StoreError> {
        let corrupt = |reason: String| StoreError::corrupt("account_mails", self.id, reason);
        let mail = AccountMail {
            id: self.id.into(),
            seller: self.seller_id.into(),
            kind: LinkKind::parse(&self.kind).ok_or_else(|| corrupt(format!("kind {:?}", self.kind)))?,
            to: self.recipient,
            name: self.recipient_name,
            url: sealing.open_link(self.id, &self.url)?,
            expires_at: self.expires_at,
        };
        let attempt = count(self.attempts).map_err(corrupt)?.saturating_add(1);
        Ok(DueMail { mail, attempt, fence })
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
    /// Mails whose link is no longer valid are given up: it expired, was used, or ended with the use of
    /// another one. An unreadable one waits for its lease's end: another process may be able to read it.
    async fn lease_mail(
        &self,
        fence: Uuid,
        lease: TimeDelta,
    ) -> Result<Option<DueMail<AccountMail>>, StoreError> {
        loop {
            let lease = LEASE_ACCOUNT_MAIL.bind((self.searched.next(), fence, microseconds(lease)));
            let Some(row) = self.searched.leased(self.statements.row(lease).await?) else {
                return Ok(None);
            };
            if let Some(due) = readable(row.leased(fence, &self.sealing)) {
                return Ok(Some(due));
            }
        }
    }

    async fn begin_attempt(&self, due: &DueMail<AccountMail>, lease: TimeDelta) -> Result<bool, StoreError> {
        let (attempt, id) = (due.attempt.cast_signed(), due.mail.id.uuid());
        let begin = BEGIN_ACCOUNT_ATTEMPT.bind((attempt, microseconds(lease), id, due.fence));
        Ok(self.statements.execute(begin).await? > 0)
    }

    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError> {
        let (next, delay) = step_columns(next);
        let record = RECORD_ACCOUNT_STEP.bind((next, delay, mail.uuid(), fence));
        // No row: the lease was lost.
        self.statements.execute(record).await?;
        Ok(())
    }
}
