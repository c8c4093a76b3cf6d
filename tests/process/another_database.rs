//! A database whose rows were written in another one.

use blackbox::until;
use serde_json::{Value, json};
use testkit::{Client, ServerOptions, TestDatabase, TestWorker};

use crate::metrics::label_at;
use crate::{PROGRAM, run_over};

/// The name of a database, as its URL ends.
fn name_of(database: &TestDatabase) -> &str {
    let (_, name) = database.url().rsplit_once('/').unwrap();
    name.split('?').next().unwrap()
}

async fn probe(url: &str) -> (u16, Value) {
    let answer = Client::new().get(&format!("{url}/readyz")).send().await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_clone_is_used_only_once_it_is_adopted() {
    let (original, other) = (TestDatabase::create().await, TestDatabase::empty().await);
    let name = name_of(&original);
    let clone = format!("{name}_clone");
    let admin = other.connect().await;
    let create = format!("create database {clone} template {name}");
    admin.batch_execute(&create).await.unwrap();
    let database = TestDatabase::at_url(&original.url().replace(name, &clone));

    // From its first request on, a process answers nothing from it.
    let options = ServerOptions::new(PROGRAM);
    let server = blackbox::listen(&options, database.url()).await;
    let me = async || {
        let me = Client::new().get(&format!("{}/v1/me", server.base_url));
        let me = me.bearer(&format!("ps_pt_{}", "A".repeat(64)));
        me.send().await.status
    };
    assert_eq!(me().await, 500);
    let (worker, probes) = TestWorker::listening(&options, &database).await;
    for url in [&server.backoffice_url, &probes] {
        until("the reason", async || {
            let (status, answer) = probe(url).await;
            status == 503 && answer.to_string().contains("seller-api admin adopt-database")
        })
        .await;
    }

    let adopt = "admin adopt-database --upgraded --json";
    run_over(database.url(), adopt).await.ended(2);
    for adopted in [true, false] {
        let told = run_over(database.url(), &format!("{adopt} --yes")).await;
        let told: Value = serde_json::from_str(&told.success().stdout).unwrap();
        let found = (&told["adopted"], &told["removed"]);
        assert_eq!(found, (&json!(adopted), &json!(0)));
    }
    // Processes that run go on by themselves.
    server.ready().await;
    until("the worker is ready", async || probe(&probes).await.0 == 200).await;
    assert_eq!(me().await, 401);

    // Each shows its database.
    let beside = blackbox::listen(&options, original.url()).await;
    beside.ready().await;
    let mut ids = Vec::new();
    for url in [&server.backoffice_url, &probes, &beside.backoffice_url] {
        let (_, answer) = probe(url).await;
        let (id, timeline) = answer["database"].as_str().unwrap().rsplit_once('/').unwrap();
        let is_shown = async || {
            let [ids, timelines] = [
                label_at(url, "database_info", "id").await,
                label_at(url, "database_info", "timeline").await,
            ];
            ids == [id] && timelines == [timeline]
        };
        until("the metric", is_shown).await;
        assert!(
            timeline.len() == 8 && timeline.bytes().all(|c| c.is_ascii_hexdigit()),
            "{timeline}"
        );
        ids.push(id.to_owned());
    }
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
    drop((server, worker));
    let drop_it = format!("drop database {clone} with (force)");
    admin.batch_execute(&drop_it).await.unwrap();
}

/// Nothing is written into it before the next look of a process at its database's identity either.
#[tokio::test]
async fn a_clone_that_takes_the_originals_place_is_not_used_meanwhile() {
    let world = crate::world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": 7})).await;
    let name = name_of(&world.database);
    let other = TestDatabase::empty().await;
    let admin = other.connect().await;
    let original = format!("{name}_original");
    world.database.block_connections().await;
    for step in [
        format!("alter database {name} rename to {original}"),
        format!("create database {name} template {original}"),
    ] {
        admin.batch_execute(&step).await.unwrap();
    }
    // Until it is known to be another one, and a little longer.
    until("the reason", async || {
        let changed = world.patch(&trader.token, &offer, &json!({"stock": 8})).await;
        assert_eq!(changed.status, 500, "{changed:?}");
        let (status, answer) = probe(&world.server.backoffice_url).await;
        status == 503 && answer.to_string().contains("adopt-database")
    })
    .await;
    let drop_it = format!("drop database {original} with (force)");
    admin.batch_execute(&drop_it).await.unwrap();
}
