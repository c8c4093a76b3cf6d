//! A cluster with the product's own tables, for tests of what is run on them.

use std::fs;
use std::path::Path;

use crate::cluster::Cluster;
use crate::pgbench::Run;

/// The database.
pub(crate) const DATABASE: &str = "postgres";
/// Two sellers that it has.
pub(crate) const SELLERS: [&str; 2] = [
    "01970000-0000-7000-8000-000000000001",
    "01970000-0000-7000-8000-000000000002",
];

/// Starts one with every migration applied, and two sellers.
pub(crate) async fn cluster() -> Cluster {
    let cluster = Cluster::start("16MB", None).await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut steps: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    steps.sort();
    for step in steps {
        let sql = fs::read_to_string(step.join("up.sql")).unwrap();
        cluster.sql(DATABASE, &sql).await.unwrap();
    }
    for (n, seller) in SELLERS.iter().enumerate() {
        let sql = format!(
            "insert into sellers (id, name, email, created_at) values ('{seller}', 'S{n}', 's{n}@x.example', now())"
        );
        cluster.sql(DATABASE, &sql).await.unwrap();
    }
    cluster
}

/// Counts rows: as many as a run made transactions of each.
pub(crate) async fn check(cluster: &Cluster, run: &Run, counts: &[&str]) {
    for count in counts {
        let found = cluster
            .sql(DATABASE, &format!("select count(*) from {count}"))
            .await;
        assert_eq!(found.unwrap(), [run.transactions.to_string()], "{count}");
    }
}
