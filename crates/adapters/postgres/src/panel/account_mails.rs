//! Mails about accounts: queued in a transaction, leased and settled by workers.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    Queryable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{DueMail, MailFate, MailId, MailQueue, StoreError};
use oauth::{AccountMail, LinkKind};
use uuid::Uuid;

use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    queue::{microseconds, settle_mail, sound},
    reads::Reads,
    sealing::Sealing,
    statement::statement,
};

struct Insert<'a> {
    id: Uuid,
    seller: Uuid,
    kind: &'static str,
    recipient: &'a str,
    name: &'a str,
    url: &'a [u8],
    expires_at: DateTime<Utc>,
}

statement!(Insert<'_> => ():
    "insert into account_mails (id, seller_id, kind, recipient, recipient_name, url, expires_at) values (", id: SqlUuid,
    ", ", seller: SqlUuid,
    ", ", kind: Text,
    ", ", recipient: Text,
    ", ", name: Text,
    ", ", url: Binary,
    ", ", expires_at: Timestamptz, ")");

/// A mail with its link sealed, on its way into the queue.
pub(super) struct Queued {
    pub(super) mail: AccountMail,
    pub(super) url: Vec<u8>,
}

#[async_trait]
impl Write for Queued {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let mail = &self.mail;
        let insert = Insert {
            id: mail.id.uuid(),
            seller: mail.seller.uuid(),
            kind: mail.kind.as_str(),
            recipient: &mail.to,
            name: &mail.name,
            url: &self.url,
            expires_at: mail.expires_at,
        };
        let queued = insert.execute(&mut connection).await.map_err(store_error)?;
        expect_rows("account_mails", queued, 1)
    }
}

/// Leases mails that are due, the longest waiting first, and gives those up whose link can no longer be used: it has expired,
/// was used, or another one has taken its place, which ends at another instant.
struct Lease {
    fence: Uuid,
    limit: i64,
    microseconds: i64,
}

statement!(Lease => (SqlUuid, SqlUuid, Text, Text, Text, Nullable<Binary>, Timestamptz, Integer):
    "with clock as materialized (select api_now() as at), \
     due as materialized (select m.id, m.seller_id, m.kind, m.expires_at from account_mails m \
       where m.due_at <= (select at from clock) order by m.due_at limit ", limit: BigInt,
    " for no key update skip locked), \
     judged as materialized (select d.id, exists (select from links l join sellers s on s.id = l.seller_id \
         where l.seller_id = d.seller_id and l.kind = d.kind and l.expires_at = d.expires_at \
           and l.expires_at > (select at from clock) and s.closed_at is null) as is_worth_sending from due d) \
     update account_mails m set attempts = attempts + j.is_worth_sending::integer, \
       fence = case when j.is_worth_sending then ", fence: SqlUuid,
    " end, due_at = case when j.is_worth_sending then (select at from clock) + ", microseconds: BigInt,
    " * interval '1 microsecond' end, dead_at = case when not j.is_worth_sending then (select at from clock) end, \
       url = case when j.is_worth_sending then m.url end from judged j where m.id = j.id \
     returning m.id, m.seller_id, m.kind, m.recipient, m.recipient_name, m.url, m.expires_at, m.attempts");

#[derive(Queryable)]
struct MailRow {
    id: Uuid,
    seller_id: Uuid,
    kind: String,
    recipient: String,
    recipient_name: String,
    url: Option<Vec<u8>>,
    expires_at: DateTime<Utc>,
    attempts: i32,
}

impl MailRow {
    /// Nothing where the mail was given up.
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
        let attempt =
            u32::try_from(self.attempts).map_err(|_| corrupt(format!("attempts {}", self.attempts)))?;
        Ok(Some(DueMail { mail, attempt, fence }))
    }
}

// A link that is sent, or never will be, does not have to lie here.
settle_mail!(
    Settle,
    "account_mails",
    ", url = case when $1 = 'again' then url end"
);

/// Each call is one statement with its own transaction.
pub(crate) struct AccountMails {
    pub(crate) reads: Reads,
    pub(crate) sealing: Sealing,
}

#[async_trait]
impl MailQueue<AccountMail> for AccountMails {
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail<AccountMail>>, StoreError> {
        let lease = Lease {
            fence,
            limit: limit.into(),
            microseconds: microseconds(lease),
        };
        let rows = self
            .reads
            .ask(|lent| async move { lease.get_results::<MailRow>(&mut lent.connection()).await })
            .await?;
        let leased = sound(rows.into_iter().map(|row| row.leased(fence, &self.sealing)));
        Ok(leased.into_iter().flatten().collect())
    }

    async fn settle_mail(&self, mail: MailId, fence: Uuid, fate: MailFate) -> Result<(), StoreError> {
        let settle = Settle {
            id: mail.uuid(),
            fence,
            fate: fate.into(),
        };
        // No row: the lease was lost.
        self.reads
            .ask(|lent| async move { settle.execute(&mut lent.connection()).await })
            .await?;
        Ok(())
    }
}
