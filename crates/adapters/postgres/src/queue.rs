//! What queues share: leases, and how a mail's lease ends.

use chrono::TimeDelta;
use kernel::{MailFate, StoreError};

/// A lease as SQL takes it; one of more than 292 000 years counts as that.
pub(crate) fn microseconds(lease: TimeDelta) -> i64 {
    lease.num_microseconds().unwrap_or(i64::MAX)
}

/// What was leased and can be worked on. A row that cannot be is told here: passed on as a failure, it would keep everything
/// from being done that was leased together with it, and be leased again and again.
pub(crate) fn sound<T>(rows: impl Iterator<Item = Result<T, StoreError>>) -> Vec<T> {
    let tell = |error: &StoreError| tracing::error!(error = %error, "a row of a queue is left out");
    rows.filter_map(|row| row.inspect_err(tell).ok()).collect()
}

/// Gives a type its statement that ends the lease of a mail: exactly one of the three instants is the mail's fate. `$besides`
/// is what else is set; in it, `$1` is the fate's word.
macro_rules! settle_mail {
    ($name:ident, $table:literal, $besides:literal) => {
        struct $name {
            id: uuid::Uuid,
            fence: uuid::Uuid,
            fate: crate::queue::Fate,
        }

        crate::statement::statement!($name => ():
            concat!("update ", $table, " set fence = null, sent_at = case "), fate.word: diesel::sql_types::Text,
            " when 'sent' then clock.at end, dead_at = case ", fate.word: diesel::sql_types::Text,
            concat!(" when 'dead' then clock.at end", $besides, ", due_at = clock.at + "),
            fate.delay: diesel::sql_types::Nullable<diesel::sql_types::BigInt>,
            " * interval '1 microsecond' from (select api_now() as at) clock where id = ", id: diesel::sql_types::Uuid,
            " and fence = ", fence: diesel::sql_types::Uuid, "");
    };
}
pub(crate) use settle_mail;

/// A mail's fate as SQL takes it.
pub(crate) struct Fate {
    pub(crate) word: &'static str,
    /// Microseconds until the next attempt.
    pub(crate) delay: Option<i64>,
}

impl From<MailFate> for Fate {
    fn from(fate: MailFate) -> Self {
        let (word, delay) = match fate {
            MailFate::Sent => ("sent", None),
            MailFate::Dead => ("dead", None),
            MailFate::Retry(delay) => ("again", Some(microseconds(delay))),
        };
        Self { word, delay }
    }
}
