//! Mails to buyers and to sellers: queued in a transaction, leased by workers, their outcomes recorded.

use accounts::{AccountMail, LinkKind};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{DueMail, Mail, MailId, MailQueue, MailStep, StoreError};
use orders::ShipmentMail;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::orders::{order_number, parse_carrier, parse_tracking_number};
use crate::schema::{account_mails, mails};
use crate::sealing::Sealing;
use crate::searched::{Found, Searched};
use crate::sql::{microseconds, readable};
use crate::statement::{Statement, statements};
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

type Lease<Row> = Statement<(Timestamptz, SqlUuid, BigInt), Found<Row>>;
type Begin = Statement<(Integer, BigInt, SqlUuid, SqlUuid), ()>;
type Record = Statement<(Text, Nullable<BigInt>, SqlUuid, SqlUuid), ()>;

/// A mail that has a table of its own.
trait StoredMail: Mail + Sized {
    type Row: QueryableByName<Pg> + Send + 'static;
    const LEASE: Lease<Self::Row>;
    const BEGIN: Begin;
    const RECORD: Record;

    /// None if it waits for an earlier one, or is dropped for a later one.
    fn leased(row: Self::Row, fence: Uuid, sealing: &Sealing) -> Result<Option<DueMail<Self>>, StoreError>;
}

/// The queue of one table. Each statement is autocommitted.
pub(crate) struct Mails {
    pub(crate) statements: Autocommit,
    pub(crate) sealing: Sealing,
    pub(crate) searched: Searched,
}

#[async_trait]
impl<M: StoredMail> MailQueue<M> for Mails {
    /// An unreadable mail waits for its lease's end: another process may be able to read it.
    async fn lease_mail(&self, fence: Uuid, lease: TimeDelta) -> Result<Option<DueMail<M>>, StoreError> {
        loop {
            let lease = M::LEASE.bind((self.searched.next().at, fence, microseconds(lease)));
            let Some(row) = self.searched.leased(self.statements.row(lease).await?) else {
                return Ok(None);
            };
            if let Some(due) = readable(M::leased(row, fence, &self.sealing)).flatten() {
                return Ok(Some(due));
            }
        }
    }

    async fn begin_attempt(&self, due: &DueMail<M>, lease: TimeDelta) -> Result<bool, StoreError> {
        let (attempt, id) = (due.attempt.cast_signed(), due.mail.id().uuid());
        let begin = M::BEGIN.bind((attempt, microseconds(lease), id, due.fence));
        Ok(self.statements.execute(begin).await? > 0)
    }

    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError> {
        let (next, delay) = match next {
            MailStep::Sent => ("sent", None),
            MailStep::Dead => ("dead", None),
            MailStep::Retry(delay) => ("again", Some(microseconds(delay))),
        };
        let record = M::RECORD.bind((next, delay, mail.uuid(), fence));
        // No row: the lease was lost, or the buyer was erased.
        self.statements.execute(record).await?;
        Ok(())
    }
}

pub(crate) fn count(attempts: i32) -> Result<u32, String> {
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
    passed_over: bool,
}

impl StoredMail for ShipmentMail {
    type Row = ShipmentRow;
    const LEASE: Lease<ShipmentRow> = LEASE_SHIPMENT_MAIL;
    const BEGIN: Begin = BEGIN_SHIPMENT_ATTEMPT;
    const RECORD: Record = RECORD_SHIPMENT_STEP;

    fn leased(row: ShipmentRow, fence: Uuid, _: &Sealing) -> Result<Option<DueMail<Self>>, StoreError> {
        if row.passed_over {
            return Ok(None);
        }
        let id = MailId::from(row.id);
        let corrupt = |reason: String| StoreError::corrupt("mails", id, reason);
        let mail = Self {
            id,
            order: row.order_id.into(),
            number: order_number(row.order_number).map_err(corrupt)?,
            to: row.recipient,
            name: row.recipient_name,
            carrier: parse_carrier(&row.carrier).map_err(corrupt)?,
            tracking_number: parse_tracking_number(row.tracking_number).map_err(corrupt)?,
            is_correction: row.is_correction,
        };
        let attempt = count(row.attempts).map_err(corrupt)?.saturating_add(1);
        Ok(Some(DueMail { mail, attempt, fence }))
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

impl StoredMail for AccountMail {
    type Row = AccountRow;
    const LEASE: Lease<AccountRow> = LEASE_ACCOUNT_MAIL;
    const BEGIN: Begin = BEGIN_ACCOUNT_ATTEMPT;
    const RECORD: Record = RECORD_ACCOUNT_STEP;

    fn leased(row: AccountRow, fence: Uuid, sealing: &Sealing) -> Result<Option<DueMail<Self>>, StoreError> {
        let corrupt = |reason: String| StoreError::corrupt("account_mails", row.id, reason);
        let mail = Self {
            id: row.id.into(),
            seller: row.seller_id.into(),
            kind: LinkKind::parse(&row.kind).ok_or_else(|| corrupt(format!("kind {:?}", row.kind)))?,
            to: row.recipient,
            name: row.recipient_name,
            url: sealing.open_link(row.id, &row.url)?,
            expires_at: row.expires_at,
        };
        let attempt = count(row.attempts).map_err(corrupt)?.saturating_add(1);
        Ok(Some(DueMail { mail, attempt, fence }))
    }
}
