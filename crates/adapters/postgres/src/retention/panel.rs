//! Clearing what the panel leaves behind.

use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use kernel::StoreError;

use super::BATCH;
use crate::{statement::statement, transaction::Tx};

/// Deletes a batch of a table's oldest rows, by an instant that its index begins with.
macro_rules! clear {
    ($(#[$doc:meta])* $name:ident, $table:literal, $key:literal, $instant:literal, $age:literal) => {
        $(#[$doc])*
        struct $name {
            batch: i64,
        }

        statement!($name => ():
            concat!("delete from ", $table, " where (", $key, ") in (select ", $key, " from ", $table, " where ", $instant,
                " < (select api_now()) - interval '", $age, "' order by ", $instant, " limit "), batch: BigInt,
            " for update skip locked)");
    };
}

clear!(
    /// A session whose seven days are over is not touched any more, and so it has been idle for eight hours soon after.
    Sessions, "sessions", "hash", "seen_at", "9 hours"
);
clear!(Links, "links", "hash", "expires_at", "1 hour");
clear!(Consents, "consents", "id", "expires_at", "1 hour");
clear!(
    /// No form is older than the session that it belongs to.
    Forms, "flashes", "session_hash, form", "created_at", "8 days"
);
clear!(
    Usage,
    "api_usage",
    "seller_id, client_id, hour, status",
    "hour",
    "35 days"
);

/// What nobody came for: it is a secret, and was to be shown at once.
struct Flashes {
    batch: i64,
}

statement!(Flashes => ():
    "update flashes set sealed = null where (session_hash, form) in (select session_hash, form from flashes \
       where sealed is not null and created_at < (select api_now()) - interval '1 hour' order by created_at limit ", batch: BigInt,
    " for update skip locked)");

/// Mails whose links expired while nobody was there to send them: the links need not lie here any longer.
struct LateMails {
    batch: i64,
}

statement!(LateMails => ():
    "update account_mails set due_at = null, dead_at = api_now(), url = null, fence = null where id in (select id \
       from account_mails where due_at < (select api_now()) - interval '1 hour' \
         and expires_at < (select api_now()) - interval '1 hour' order by due_at limit ", batch: BigInt,
    " for update skip locked)");

/// Mails that were sent, or given up.
struct Mails {
    batch: i64,
}

statement!(Mails => ():
    "delete from account_mails where id in (select id from account_mails where due_at is null \
       and coalesce(sent_at, dead_at) < (select api_now()) - interval '30 days' order by coalesce(sent_at, dead_at) limit ",
    batch: BigInt, " for update skip locked)");

/// The ids rise with time: the first rows are looked at, and no index by time is needed.
struct AuditLog {
    batch: i64,
}

statement!(AuditLog => ():
    "delete from audit_log where id in (select id from (select id, at from audit_log order by id limit ", batch: BigInt,
    ") oldest where at < (select api_now()) - interval '400 days')");

/// Clears one batch of each kind in a transaction of the caller's; tells how much of each.
pub(super) async fn clear_panel(tx: &Tx) -> Result<[usize; 9], StoreError> {
    let mut connection = tx.connection();
    let batch = BATCH;
    Ok([
        tx.run(Sessions { batch }.execute(&mut connection)).await?,
        tx.run(Links { batch }.execute(&mut connection)).await?,
        tx.run(Consents { batch }.execute(&mut connection)).await?,
        tx.run(Forms { batch }.execute(&mut connection)).await?,
        tx.run(Flashes { batch }.execute(&mut connection)).await?,
        tx.run(LateMails { batch }.execute(&mut connection)).await?,
        tx.run(Mails { batch }.execute(&mut connection)).await?,
        tx.run(Usage { batch }.execute(&mut connection)).await?,
        tx.run(AuditLog { batch }.execute(&mut connection)).await?,
    ])
}
