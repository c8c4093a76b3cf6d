//! Which database this is, and in which one its rows were written.
//!
//! They differ where a dump was restored, a database cloned, or a cluster upgraded: then the transaction ids
//! of the change feed may mean nothing, and two services may work on the same orders. Standbys and physical
//! backups are the same database.

use std::sync::atomic::Ordering;

use accounts::{Action, Actor};
use diesel::{QueryResult, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use kernel::{StoreError, TransactionError};

use crate::accounts::audit;
use crate::connection::error::store_error;
use crate::connection::{BEGIN_UNLIMITED, IDENTITY, Identity};
use crate::database::{Database, SET_MARK};
use crate::schema::changes;
use crate::statement::{Only, Prepared, statements};

statements! {
    "identity.sql";
    HERE: () -> Only<Text, String>;
    BEGIN_FEED: ();
    AHEAD: ();
}

kernel::words! {
    /// How rows of another database came into this one; the names are those of the command line and the audit log.
    pub enum Arrival {
        /// From a dump. The feed is emptied, and all cursors from before are refused: it is another one from then
        /// on.
        Restored = "restored",
        /// All of them, by `pg_upgrade` or a copy. The feed stays, and cursors continue.
        Upgraded = "upgraded",
    }
}

/// The result of adopting a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// Its rows were its own already.
    Unneeded,
    /// The feed cannot stay: it names transactions that this cluster has yet to begin. Nothing was changed.
    FeedAhead,
    /// So many items were removed from the feed.
    Adopted { removed: usize },
}

impl Database {
    /// Which database this is, also before it has tables.
    pub async fn here(&self) -> Result<Option<String>, StoreError> {
        let statements = self.autocommit("schema").of_any_database();
        let here = statements.row(HERE.bare()).await?;
        Ok(here.map(|row| row.0))
    }

    /// Which database this is, and in which one its rows were written. Needs the schema.
    pub async fn identity(&self) -> Result<Identity, StoreError> {
        let statements = self.autocommit("schema").of_any_database();
        let identity = statements.row(IDENTITY.bare()).await?;
        let identity = identity.ok_or_else(|| StoreError::unexpected("the database has no identity"))?;
        let finished = &self.connector().finished;
        finished.store(identity.is_finished, Ordering::Relaxed);
        Ok(identity)
    }

    /// Makes rows that were written in another database this one's own, in one transaction without time
    /// limits.
    pub async fn adopt(&self, arrival: Arrival) -> Result<Adoption, TransactionError> {
        let open = self.connector().open().await.map_err(StoreError::from)?;
        let mut connection = open.connection();
        let adopted = take_over(connection, arrival).await.map_err(store_error)?;
        if !matches!(adopted, Adoption::Adopted { .. }) {
            return Ok(adopted);
        }
        let (by, action) = (Actor::CommandLine, Action::DatabaseAdopted);
        let os_user = self.units.os_user.clone();
        let entry = audit::entry(by, None, action, arrival.as_str(), None, os_user);
        entry(connection).await?;
        let committed = connection.batch_execute("commit").await;
        committed.map_err(|error| TransactionError::Unknown(store_error(error)))?;
        self.connector().set_foreign(false);
        Ok(adopted)
    }
}

/// Begins the transaction, and makes the rows this database's own in it.
async fn take_over(mut connection: &AsyncPgConnection, arrival: Arrival) -> QueryResult<Adoption> {
    connection.batch_execute(BEGIN_UNLIMITED).await?;
    let identity = IDENTITY.bare().get_result::<Identity>(&mut connection).await?;
    if identity.is_own() && arrival == Arrival::Upgraded {
        return Ok(Adoption::Unneeded);
    }
    let adopt = SET_MARK.bind(("database", identity.here));
    adopt.execute(&mut connection).await?;
    let removed = match arrival {
        Arrival::Restored => {
            BEGIN_FEED.bare().execute(&mut connection).await?;
            let empty = Prepared(diesel::delete(changes::table));
            empty.execute(&mut connection).await?
        }
        Arrival::Upgraded => {
            if AHEAD.bare().execute(&mut connection).await? > 0 {
                return Ok(Adoption::FeedAhead);
            }
            0
        }
    };
    Ok(Adoption::Adopted { removed })
}
