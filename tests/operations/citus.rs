//! What can be known without Citus of the script that distributes an installation over its nodes: that the tables' keys and references
//! admit it, and that the program works afterwards with one key a statement.
//!
//! Citus (documentation, "Determining the distribution column" and "SQL support") takes a table apart only where each of its unique keys
//! has the column that it is taken apart by, and keeps a foreign key only between tables that lie together and along that column, or
//! from there to a table that is on every node.

use std::collections::BTreeMap;

use blackbox::{HOOK_SCOPES, Receiver, World, line, local_receivers};
use serde_json::json;
use testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{PROGRAM, root};

/// What takes the place of Citus: it notes what it is asked for.
const NOTES: &str = "
    create table asked (n serial, name regclass, by text, beside text);
    create function create_reference_table(name regclass) returns void language sql
        as $$ insert into asked (name) values (name) $$;
    create function create_distributed_table(name regclass, by text, colocate_with text default null) returns void language sql
        as $$ insert into asked (name, by, beside) values (name, by, colocate_with) $$;";

/// Tables of the class `seller` or `credential` that stay on the coordinator.
const STAY: [(&str, &str); 4] = [
    ("changes", "the feed is ordered by one server's transaction ids"),
    ("sessions", "found by its hash alone"),
    ("links", "found by its hash alone"),
    ("flashes", "lies with its session"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Everywhere,
    /// By this column, together with this table and those that lie with it.
    Apart {
        by: String,
        with: String,
    },
}

/// Runs the script over a migrated database, and tells where each table that it names lies.
async fn distributed(client: &Client) -> BTreeMap<String, Place> {
    let script = std::fs::read_to_string(root().join("migrations/citus.sql")).unwrap();
    client.batch_execute(NOTES).await.unwrap();
    client.batch_execute(&script).await.unwrap();
    let mut places = BTreeMap::new();
    for row in client
        .query("select name::text, by, beside from asked order by n", &[])
        .await
        .unwrap()
    {
        let name: String = row.get(0);
        let place = match (row.get::<_, Option<String>>(1), row.get::<_, Option<String>>(2)) {
            (None, _) => Place::Everywhere,
            (Some(by), Some(beside)) if beside != "none" => match &places[&beside] {
                Place::Apart { with, .. } => Place::Apart {
                    by,
                    with: with.clone(),
                },
                Place::Everywhere => panic!("{name} lies beside {beside}, which is everywhere"),
            },
            (Some(by), _) => Place::Apart {
                by,
                with: name.clone(),
            },
        };
        assert_eq!(places.insert(name.clone(), place), None, "{name} is named twice");
    }
    places
}

/// Table → class, as `migrations/README.md` lists them.
fn classes() -> BTreeMap<String, String> {
    let readme = std::fs::read_to_string(root().join("migrations/README.md")).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| {
        row.split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect::<Vec<_>>()
    });
    cells
        .filter(|cells| ["seller", "credential", "global"].contains(&cells[2].as_str()))
        .map(|cells| (cells[1].clone(), cells[2].clone()))
        .collect()
}

#[tokio::test]
async fn tables_are_taken_apart_by_their_class() {
    let database = TestDatabase::create().await;
    let places = distributed(&database.connect().await).await;
    let classes = classes();
    assert!(classes.len() > 20);
    for name in places.keys() {
        assert!(classes.contains_key(name), "{name} is in no class");
    }
    for (name, class) in classes {
        let stays = STAY.iter().any(|(table, _)| *table == name);
        match (class.as_str(), places.get(&name)) {
            (_, None) if stays => {}
            ("seller", Some(Place::Apart { by, with })) => {
                assert_eq!((by.as_str(), with.as_str()), ("seller_id", "offers"), "{name}");
            }
            ("credential", Some(Place::Apart { with, .. })) => assert_eq!(with, "families", "{name}"),
            ("global", None | Some(Place::Everywhere)) => {}
            (class, place) => panic!("{name}, a {class} table, lies {place:?}"),
        }
    }
}

#[tokio::test]
async fn unique_keys_have_the_column_and_no_number_is_given_out_by_a_short_identity() {
    let database = TestDatabase::create().await;
    let client = database.connect().await;
    let places = distributed(&client).await;
    let keys = "select i.indrelid::regclass::text, i.indexrelid::regclass::text, array(select a.attname::text from pg_attribute a
            where a.attrelid = i.indrelid and a.attnum = any(i.indkey)) from pg_index i
          join pg_class c on c.oid = i.indrelid where c.relnamespace = 'public'::regnamespace and i.indisunique";
    let mut seen = 0;
    for row in client.query(keys, &[]).await.unwrap() {
        let (table, key, columns): (String, String, Vec<String>) = (row.get(0), row.get(1), row.get(2));
        if let Some(Place::Apart { by, .. }) = places.get(&table) {
            assert!(columns.contains(by), "{key} of {table} has {columns:?}");
            seen += 1;
        }
    }
    assert!(seen >= places.len() - 3, "{seen}");
    let short = "select a.attrelid::regclass::text from pg_attribute a where a.attidentity <> '' and a.atttypid <> 'bigint'::regtype";
    for row in client.query(short, &[]).await.unwrap() {
        assert!(!places.contains_key(&row.get::<_, String>(0)));
    }
}

#[tokio::test]
async fn foreign_keys_hold_on_the_node_that_has_the_row() {
    let database = TestDatabase::create().await;
    let client = database.connect().await;
    let places = distributed(&client).await;
    let keys = "select c.conname::text, c.conrelid::regclass::text, c.confrelid::regclass::text,
          array(select a.attname::text from unnest(c.conkey) with ordinality k (n, at)
            join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.at),
          array(select a.attname::text from unnest(c.confkey) with ordinality k (n, at)
            join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by k.at)
        from pg_constraint c where c.contype = 'f' and c.connamespace = 'public'::regnamespace";
    let keys = client.query(keys, &[]).await.unwrap();
    assert!(keys.len() > 10);
    for row in keys {
        let (key, from, to): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (here, there): (Vec<String>, Vec<String>) = (row.get(3), row.get(4));
        match (places.get(&from), places.get(&to)) {
            // From the coordinator's tables, and within them; what is everywhere is on the coordinator too.
            (_, Some(Place::Everywhere)) | (None, None) => {}
            (
                Some(Place::Apart { by, with }),
                Some(Place::Apart {
                    by: other,
                    with: beside,
                }),
            ) => {
                assert_eq!(with, beside, "{key}");
                let mut pairs = here.iter().zip(&there);
                assert!(
                    pairs.any(|pair| pair == (by, other)),
                    "{key}: {here:?} → {there:?}"
                );
            }
            (from, to) => panic!("{key} leads from {from:?} to {to:?}"),
        }
    }
}

#[tokio::test]
async fn a_trade_goes_through_with_one_key_a_statement() {
    let database = TestDatabase::create().await;
    distributed(&database.connect().await).await;
    let settings = |options| local_receivers(options).set("SELLER_API__DATABASE__GATHERING", "router");
    let world = World::over(PROGRAM, database, settings).await;
    let (one, other) = (world.seller().await, world.seller().await);
    assert_eq!(other.seller_no, one.seller_no + 1);
    let application = world.application(&one, &HOOK_SCOPES).await;
    let token = world.token(&application).await;
    let receiver = Receiver::start().await;
    world.hook(&token, &receiver).await;
    let offer = world.any_offer(&one, json!({"stock": 5})).await;
    let changed = world
        .patching(&token, &offer, &json!({"stock": 7}))
        .header("idempotency-key", "k");
    changed.send().await.expect(200);
    let order = world.paid(&[line(&one, &offer, 2)], json!({})).await;
    let read = world
        .get(&token, &format!("/v1/offers/{offer}"))
        .await
        .expect(200)
        .json();
    assert_eq!(read["stock"], 5);
    let listed = world.get(&token, "/v1/orders").await.expect(200).json();
    assert_eq!(listed["items"][0]["id"], order.id.as_str());
    receiver.hears("order.paid").await;
    let (_, stranger) = world.reader().await;
    world
        .get(&stranger, &format!("/v1/offers/{offer}"))
        .await
        .expect(404);
}
