//! How the server carries out a statement of the adapter's.

use serde_json::Value;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The statement that the adapter sent last among those with these words in them.
pub(crate) async fn sent(client: &Client, words: &str) -> String {
    let sql = "select query from pg_stat_activity where datname = current_database() and application_name = 'seller-api' \
               and query like '%' || $1 || '%' order by query_start desc limit 1";
    client.query_one(sql, &[&words]).await.unwrap().get(0)
}

/// The nodes of a plan, with what each of them really did.
#[derive(Debug)]
pub(crate) struct Plan(pub(crate) Vec<Value>);

impl Plan {
    /// Runs a statement by its generic plan.
    pub(crate) async fn of(client: &Client, sql: &str, arguments: &str) -> Self {
        let types = if sql.contains("unnest") {
            "(uuid[], uuid[])"
        } else {
            ""
        };
        let prepare =
            format!("set plan_cache_mode = force_generic_plan; deallocate all; prepare it {types} as {sql}");
        client.batch_execute(&prepare).await.unwrap();
        let explain = format!("explain (analyze, buffers, format json) execute it ({arguments})");
        let rows = client
            .simple_query(&explain)
            .await
            .unwrap_or_else(|error| panic!("{sql} with {arguments}: {error:?}"));
        let text = rows.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
            _ => None,
        });
        let plan: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let mut nodes = Vec::new();
        flatten(&plan[0]["Plan"], &mut nodes);
        Self(nodes)
    }

    /// Holds the plan to scans of the table's indexes, the named one among them, that read what they return and little more.
    pub(crate) fn scans(&self, table: &str, index: &str, rows: i64, what: &str) {
        let Self(nodes) = self;
        let scans = nodes
            .iter()
            .filter(|node| node["Relation Name"] == table)
            .collect::<Vec<_>>();
        assert!(
            scans.iter().any(|scan| scan["Index Name"] == index),
            "{what}: not by {index}: {nodes:#?}"
        );
        for scan in scans {
            assert!(scan["Index Name"].is_string(), "{what}: {scan:#}");
            let loops = scan["Actual Loops"].as_i64().unwrap();
            let read =
                scan["Actual Rows"].as_i64().unwrap() + scan["Rows Removed by Filter"].as_i64().unwrap_or(0);
            assert!(
                read * loops <= rows,
                "{what}: reads {read} × {loops} rows: {scan:#}"
            );
        }
        let buffers = nodes[0]["Shared Hit Blocks"].as_i64().unwrap()
            + nodes[0]["Shared Read Blocks"].as_i64().unwrap();
        assert!(
            buffers <= 4 * rows + 20,
            "{what}: {buffers} pages for {rows} rows"
        );
    }

    /// Whether it sorts anything.
    pub(crate) fn sorts(&self) -> bool {
        let Self(nodes) = self;
        nodes.iter().any(|node| {
            node["Node Type"]
                .as_str()
                .is_some_and(|kind| kind.contains("Sort"))
        })
    }
}

fn flatten(node: &Value, into: &mut Vec<Value>) {
    into.push(node.clone());
    for child in node["Plans"].as_array().into_iter().flatten() {
        flatten(child, into);
    }
}
