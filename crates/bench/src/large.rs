//! Fills a database as large as a big marketplace's, for plans, migrations and whatever else shows only at
//! size.

use anyhow::Context as _;
use clap::Args;
use tokio_postgres::NoTls;

use crate::context::step;

/// The statements, separated by empty lines.
const SQL: &str = include_str!("large.sql");

/// Which database is filled.
#[derive(Clone, Debug, Args)]
pub(crate) struct LargeOptions {
    /// An empty, migrated database
    #[arg(env = "DATABASE_URL", hide_env_values = true)]
    url: String,
    /// A fraction of the full size, which takes 13 GB and a quarter of an hour
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

pub(crate) async fn run(options: &LargeOptions) -> anyhow::Result<()> {
    let (client, connection) = tokio_postgres::connect(&options.url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client
        .batch_execute(&format!("set bench.scale = '{}'", options.scale))
        .await?;
    for statement in SQL.split(";\n\n") {
        let title = statement.lines().find(|line| !line.starts_with("--"));
        step(title.unwrap_or_default());
        client
            .batch_execute(statement)
            .await
            .with_context(|| statement.to_owned())?;
    }
    drop(client);
    Ok(connection.await??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::tests::{DATABASE, migrated};

    #[tokio::test]
    async fn every_statement_suits_the_migrated_tables() {
        let cluster = migrated().await;
        let url = cluster.url(DATABASE);
        run(&LargeOptions { url, scale: 0.001 }).await.unwrap();
    }
}
