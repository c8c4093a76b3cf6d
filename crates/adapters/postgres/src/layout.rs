//! Where offers and orders are: on the one server, or distributed by seller over the workers of a Citus
//! cluster. All other tables are plain tables of the coordinator.
//!
//! On Citus, a statement must name its seller (`seller_id = $1`): others go to every shard, or are refused.
//! The statements with a form of their own for it are found by [`Layout::Citus`].

use diesel::sql_types::BigInt;
use serde::{Deserialize, Serialize};

use crate::connection::{Connector, url};
use crate::migrations::{CONNECT_TIMEOUT, MigrateError, take_lock};
use crate::statement::statements;

statements! {
    "migrations.sql";
    DISTRIBUTION: ();
    TABLE_CONTENTS: (BigInt);
}

/// `database.layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// All tables on one server.
    #[default]
    Single,
    /// Offers and orders on the workers of a Citus cluster, the rest on its coordinator.
    Citus,
}

/// Up to this many rows of a table are distributed without `--with-data`.
pub(crate) const MAX_ROWS_WITHOUT_CONFIRMATION: u32 = 10_000;

/// Distributes a migrated database; false if it was distributed already. Unless `with_data`, refuses to move
/// many rows.
pub async fn distribute(url: &str, with_data: bool) -> Result<bool, MigrateError> {
    let connector = Connector::new(url::parse(url)?, CONNECT_TIMEOUT);
    let client = connector.open_bare().await?;
    let failed = |error: tokio_postgres::Error| {
        MigrateError::of(error, |cause| MigrateError::Failed {
            name: "--distribute".to_owned(),
            cause,
        })
    };
    take_lock(&client, drop).await.map_err(failed)?;
    let state = client.query_one(DISTRIBUTION.text, &[]);
    let state = state.await.map_err(failed)?;
    match (state.get(0), state.get(1)) {
        (true, _) => return Ok(false),
        (_, false) => return Err(MigrateError::NoWorker),
        (false, true) => {}
    }
    let most = i64::from(MAX_ROWS_WITHOUT_CONFIRMATION);
    let contents = client
        .query_one(TABLE_CONTENTS.text, &[&most])
        .await
        .map_err(failed)?;
    match (contents.get(0), contents.get(1)) {
        (false, _) => Err(MigrateError::NoWorker),
        (_, true) if !with_data => Err(MigrateError::HoldsData),
        _ => {
            let distribute = client.batch_execute(include_str!("layout/distribute.sql"));
            distribute.await.map_err(failed)?;
            Ok(true)
        }
    }
}
