//! How PostgreSQL carried out what the program asked: every statement with its plan, as the server's own `auto_explain` writes
//! it into the log. The values, the plans that are kept and the state of the tables are then those of the program's own work.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::figures::{Spread, real};

/// A table that is read from end to end is small up to so many rows.
const FEW: u64 = 2_000;
/// What stands before the time that a statement took.
const DURATION: &str = "LOG:  duration: ";
/// What stands between that and the plan.
const PLAN: &str = " ms  plan:";

/// Turns it on for the sessions that begin in a database from now on. Of so large a share of the statements it tells.
pub(crate) async fn turn_on(cluster: &Cluster, database: &str, share: f64) -> anyhow::Result<()> {
    let settings = [
        "session_preload_libraries = 'auto_explain'".to_owned(),
        "auto_explain.log_min_duration = 0".to_owned(),
        "auto_explain.log_analyze = on".to_owned(),
        "auto_explain.log_buffers = on".to_owned(),
        // The time of every node would cost more than the nodes.
        "auto_explain.log_timing = off".to_owned(),
        "auto_explain.log_format = json".to_owned(),
        format!("auto_explain.sample_rate = {share}"),
    ];
    let changes = settings.map(|setting| format!("alter database {database} set {setting}"));
    // The settings are known where the library is.
    let sql = format!("load 'auto_explain'; {}", changes.join("; "));
    let turned_on = cluster.sql(database, &sql).await;
    turned_on.context("plans are told by PostgreSQL's module auto_explain")?;
    Ok(())
}

/// Turns it off for the sessions that begin from now on.
pub(crate) async fn turn_off(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    cluster
        .sql(database, &format!("alter database {database} reset all"))
        .await?;
    Ok(())
}

/// Looks at what is told from a moment on.
#[derive(Debug)]
pub(crate) struct Watch {
    log: PathBuf,
    from: u64,
}

impl Watch {
    /// From now on.
    pub(crate) fn begin(cluster: &Cluster) -> anyhow::Result<Self> {
        let log = cluster.log_file();
        let from = std::fs::metadata(&log).context("the server has no log")?.len();
        Ok(Self { log, from })
    }

    /// What was told until now.
    pub(crate) fn end(self) -> anyhow::Result<Vec<Execution>> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        executions(&String::from_utf8_lossy(&text))
    }
}

/// How a statement was carried out once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Execution {
    /// The statement, in one line.
    pub(crate) sql: String,
    /// How long it took.
    pub(crate) milliseconds: f64,
    /// Rows that it gave.
    pub(crate) rows: f64,
    /// Pages that were found in PostgreSQL's memory.
    pub(crate) hit: u64,
    /// Pages that were not.
    pub(crate) read: u64,
    /// How tables were read, each way once.
    pub(crate) scans: Vec<Scan>,
}

/// How a table was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scan {
    /// The kind of node.
    pub(crate) kind: String,
    /// The index, or the table where there is none.
    pub(crate) of: String,
    /// False where a table with many rows was read from end to end.
    pub(crate) few: bool,
}

impl Scan {
    /// Whether it reads a table from end to end.
    pub(crate) fn is_whole(&self) -> bool {
        self.kind == "Seq Scan"
    }
}

/// The entries of a log. What belongs to an entry is indented.
fn executions(log: &str) -> anyhow::Result<Vec<Execution>> {
    let (mut all, mut lines) = (Vec::new(), log.lines().peekable());
    while let Some(line) = lines.next() {
        let Some((_, duration)) = line.split_once(DURATION) else {
            continue;
        };
        let Some(milliseconds) = duration.strip_suffix(PLAN) else {
            continue;
        };
        let mut plan = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            plan.push_str(more.trim_start());
            plan.push('\n');
        }
        let plan: Value = match serde_json::from_str(&plan) {
            Ok(plan) => plan,
            // The last one may still be being written.
            Err(_) if lines.peek().is_none() => break,
            Err(error) => return Err(error).context("a plan in the log is no JSON"),
        };
        all.push(Execution::of(&plan, milliseconds.parse()?).context("a plan in the log is another one")?);
    }
    Ok(all)
}

impl Execution {
    fn of(told: &Value, milliseconds: f64) -> Option<Self> {
        let plan = told.get("Plan")?;
        let mut parts = vec![plan];
        parts.extend(unread(plan));
        let sum = |name: &str| -> Option<u64> {
            let numbers = parts.iter().map(|part| part.get(name).and_then(Value::as_u64));
            numbers.sum()
        };
        let words: Vec<_> = told.get("Query Text")?.as_str()?.split_whitespace().collect();
        Some(Self {
            sql: words.join(" "),
            milliseconds,
            rows: plan.get("Actual Rows").and_then(Value::as_f64)?,
            hit: sum("Shared Hit Blocks")?,
            read: sum("Shared Read Blocks")?,
            scans: scans(plan),
        })
    }

    /// Pages that were looked at.
    pub(crate) const fn pages(&self) -> u64 {
        self.hit + self.read
    }
}

/// Table expressions that nothing reads: they are carried out after all else, and the figures of the whole are without theirs.
fn unread(plan: &Value) -> Vec<&Value> {
    let mut nodes = Vec::new();
    flatten(plan, &mut nodes);
    let text = |node: &Value, name: &str| node.get(name).and_then(Value::as_str).map(str::to_owned);
    let read: Vec<_> = nodes.iter().filter_map(|node| text(node, "CTE Name")).collect();
    let is_unread = |node: &&Value| {
        let name = text(node, "Subplan Name");
        let name = name.as_deref().and_then(|name| name.strip_prefix("CTE "));
        name.is_some_and(|name| !read.iter().any(|read| read == name))
    };
    nodes.into_iter().filter(is_unread).collect()
}

fn flatten<'v>(node: &'v Value, into: &mut Vec<&'v Value>) {
    into.push(node);
    let children = node.get("Plans").and_then(Value::as_array);
    for child in children.into_iter().flatten() {
        flatten(child, into);
    }
}

/// How tables are read in a plan, each way once.
fn scans(plan: &Value) -> Vec<Scan> {
    let mut nodes = Vec::new();
    flatten(plan, &mut nodes);
    let scan = |node: &Value| {
        let text = |name: &str| node.get(name).and_then(Value::as_str);
        let (kind, of) = (
            text("Node Type")?,
            text("Index Name").or_else(|| text("Relation Name"))?,
        );
        let number = |name: &str| node.get(name).and_then(Value::as_f64).unwrap_or_default();
        let rows = number("Actual Rows") + number("Rows Removed by Filter");
        // A bitmap is made of an index, which is told, and then the table is read by it.
        (kind.ends_with("Scan") && kind != "Bitmap Heap Scan").then(|| Scan {
            kind: kind.to_owned(),
            of: of.to_owned(),
            few: kind != "Seq Scan" || rows <= real(FEW),
        })
    };
    let mut scans: Vec<_> = nodes.into_iter().filter_map(scan).collect();
    scans.sort();
    scans.dedup();
    scans
}

/// What several executions cost, by their medians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// How many there were.
    pub(crate) executions: u64,
    /// How long one took, in milliseconds.
    pub(crate) milliseconds: f64,
    /// Rows that it gave.
    pub(crate) rows: f64,
    /// Pages that were found in memory.
    pub(crate) hit: f64,
    /// Pages that were not.
    pub(crate) read: f64,
}

impl Cost {
    /// Of all those that are given.
    pub(crate) fn of(executions: &[&Execution]) -> anyhow::Result<Self> {
        let median = |figure: &dyn Fn(&Execution) -> f64| {
            let figures = executions.iter().map(|execution| figure(execution));
            Spread::of(figures).median
        };
        Ok(Self {
            executions: u64::try_from(executions.len())?,
            milliseconds: median(&|execution| execution.milliseconds),
            rows: median(&|execution| execution.rows),
            hit: median(&|execution| real(execution.hit)),
            read: median(&|execution| real(execution.read)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_server_tells_what_it_did() {
        const DATABASE: &str = "told";
        let cluster = Cluster::start("16MB", None).await.unwrap();
        cluster.sql("postgres", "create database told").await.unwrap();
        let fill = "create table t as select n from generate_series(1, 5000) n; create index t_n on t (n); analyze t";
        cluster.sql(DATABASE, fill).await.unwrap();
        turn_on(&cluster, DATABASE, 1.0).await.unwrap();
        let watch = Watch::begin(&cluster).unwrap();
        for sql in ["select n from t where n = 7", "select  count(*)\n from t"] {
            cluster.sql(DATABASE, sql).await.unwrap();
        }
        turn_off(&cluster, DATABASE).await.unwrap();
        cluster
            .sql(DATABASE, "select n from t where n = 8")
            .await
            .unwrap();
        let told = watch.end().unwrap();
        let [by_index, whole] = told.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!(by_index.scans.first().unwrap().of, "t_n");
        assert!(!by_index.scans.iter().any(Scan::is_whole));
        assert_eq!(whole.sql, "select count(*) from t");
        assert!(
            whole.scans.iter().any(Scan::is_whole) && whole.pages() > 0,
            "{whole:?}"
        );
        let cost = Cost::of(&[by_index, whole]).unwrap();
        assert_eq!((cost.executions, cost.rows), (2, 1.0));
    }

    #[test]
    fn what_is_carried_out_last_counts_too() {
        let node = |name: &str, cte: &str, pages: u64| serde_json::json!({"Node Type": "x", "Subplan Name": name, "CTE Name": cte, "Shared Hit Blocks": pages});
        let told = serde_json::json!({"Query Text": "x", "Plan": {
            "Node Type": "Result", "Actual Rows": 0, "Shared Hit Blocks": 10, "Shared Read Blocks": 0,
            "Plans": [node("CTE read", "", 4), node("CTE unread", "", 5), node("", "read", 1)]}});
        // What has no figure of pages that were read is not of this module's making.
        assert_eq!(Execution::of(&told, 1.0), None);
        let told = told.to_string().replace(
            "\"Node Type\":\"x\"",
            "\"Node Type\":\"x\",\"Shared Read Blocks\":1",
        );
        let told = Execution::of(&serde_json::from_str(&told).unwrap(), 1.0).unwrap();
        assert_eq!((told.hit, told.read), (15, 1));
    }

    #[test]
    fn other_lines_are_passed_over() {
        let log = "x LOG:  duration: 1.5 ms  statement: select\nx LOG:  other\n\tindented\n\
                   x LOG:  duration: 0.250 ms  plan:\n\t{\n\t  \"Query Text\": \"select\\n 1\",\n\t  \"Plan\": {\n\
                   \t\"Node Type\": \"Result\", \"Actual Rows\": 1, \"Shared Hit Blocks\": 2, \"Shared Read Blocks\": 3}\n\t}\nend\n";
        let told = executions(log).unwrap();
        let expected = Execution {
            sql: "select 1".to_owned(),
            milliseconds: 0.25,
            rows: 1.0,
            hit: 2,
            read: 3,
            scans: Vec::new(),
        };
        assert_eq!(told, [expected]);
        assert!(executions("LOG:  duration: 1 ms  plan:\nx").is_err());
    }
}
