//! Where offers and orders are: on the one server, or distributed by seller over the workers of a Citus cluster. All
//! other tables are plain tables of the coordinator.
//!
//! On Citus, a statement must name its seller (`seller_id = $1`): others go to every shard, or are refused. The
//! statements with a form of their own for it are found by [`Layout::Citus`].

use serde::{Deserialize, Serialize};

use crate::connection::{Connector, url};
use crate::migrations::{CONNECT_TIMEOUT, MigrateError, take_lock};

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

/// A commit over a worker and plain tables of the coordinator is not atomic, unless the transaction has also touched a
/// table of the coordinator that Citus manages: `distributed_writes`. It stays empty; its existence marks a distributed
/// database.
///
/// Drops foreign keys from or to plain tables. Backfills `orders.sellers` where it is null.
const DISTRIBUTE: &str = "
    lock table offers, seller_orders, orders, parcels in access exclusive mode;
    alter table offers drop constraint offers_seller_id_fkey;
    alter table seller_orders drop constraint seller_orders_seller_id_fkey;
    alter table parcels drop constraint parcels_seller_id_order_id_fkey;
    update orders o set sellers = (select array_agg(p.seller_id order by p.seller_id) from seller_orders p
        where p.order_id = o.order_id) where sellers is null;
    create table distributed_writes (id smallint primary key);
    select citus_add_local_table_to_metadata('distributed_writes');
    select create_distributed_table('offers', 'seller_id');
    select create_distributed_table('seller_orders', 'seller_id', colocate_with => 'offers');
    select truncate_local_data_after_distributing_table('offers');
    select truncate_local_data_after_distributing_table('seller_orders');
    commit";

/// Distributes a migrated database; false if it was distributed already. Unless `with_data`, refuses to move many rows.
pub async fn distribute(url: &str, with_data: bool) -> Result<bool, MigrateError> {
    let connector = Connector::new(url::parse(url)?, CONNECT_TIMEOUT);
    let client = connector.open_bare().await?;
    let failed = |error: tokio_postgres::Error| {
        MigrateError::of(error, |cause| MigrateError::Failed {
            name: "--distribute".to_owned(),
            cause,
        })
    };
    take_lock(&client).await.map_err(failed)?;
    let state =
        "select to_regclass('distributed_writes') is not null, to_regclass('pg_dist_node') is not null";
    let state = client.query_one(state, &[]).await.map_err(failed)?;
    match (state.get(0), state.get(1)) {
        (true, _) => return Ok(false),
        (_, false) => return Err(MigrateError::NoWorker),
        (false, true) => {}
    }
    let most = MAX_ROWS_WITHOUT_CONFIRMATION;
    let state = format!(
        "select exists (select from pg_dist_node where groupid <> 0 and isactive), \
           (select count(*) from (select 1 from offers limit {most} + 1) o) > {most} \
             or (select count(*) from (select 1 from seller_orders limit {most} + 1) p) > {most}"
    );
    let state = client.query_one(&state, &[]).await.map_err(failed)?;
    match (state.get(0), state.get(1)) {
        (false, _) => Err(MigrateError::NoWorker),
        (_, true) if !with_data => Err(MigrateError::HoldsData),
        _ => {
            client.batch_execute(DISTRIBUTE).await.map_err(failed)?;
            Ok(true)
        }
    }
}
