//! The schema keeps its rules: reversible, indexed, and keyed by class.

use std::{collections::BTreeMap, fs};

use testkit::TestDatabase;
use tokio_postgres::Client;

/// Everything that a schema consists of, as text: columns, constraints, indexes, functions, settings of tables.
const CATALOGUE: &str = "
    select 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || case when a.attnotnull then ' not null' else '' end || ' ' || a.attidentity::text
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where n.nspname = 'public' and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'S', 'v')
    union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'table ' || relname || ' ' || coalesce(array_to_string(reloptions, ','), '')
      from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
    union all select 'fact ' || version || ' ' || oldest_binary from schema_facts
    order by 1";

async fn texts(client: &Client, sql: &str) -> Vec<String> {
    client
        .query(sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect()
}

fn folders() -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir("../../../migrations")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders = entries.filter(|path| path.is_dir()).collect::<Vec<_>>();
    folders.sort();
    folders
}

async fn run(client: &Client, folder: &std::path::Path, file: &str) {
    let sql = fs::read_to_string(folder.join(file)).unwrap();
    client
        .batch_execute(&sql)
        .await
        .unwrap_or_else(|e| panic!("{}/{file}: {e:?}", folder.display()));
}

#[tokio::test]
async fn every_migration_can_be_undone_and_done_again() {
    let place = TestDatabase::create().await;
    let client = place.connect().await;
    let before = texts(&client, CATALOGUE).await;
    for folder in folders().iter().rev() {
        run(&client, folder, "down.sql").await;
    }
    let left = "select relname::text from pg_class where relnamespace = 'public'::regnamespace \
                and relname not like '\\_\\_diesel%' union all \
                select proname::text from pg_proc where pronamespace = 'public'::regnamespace";
    assert_eq!(texts(&client, left).await, Vec::<String>::new());
    for folder in folders() {
        run(&client, &folder, "up.sql").await;
    }
    assert_eq!(texts(&client, CATALOGUE).await, before);
}

#[tokio::test]
async fn undoing_one_migration_restores_what_was_there_before_it() {
    let place = TestDatabase::empty().await;
    let client = place.connect().await;
    let mut before = Vec::new();
    for folder in folders() {
        run(&client, &folder, "up.sql").await;
        let after = texts(&client, CATALOGUE).await;
        if !before.is_empty() {
            run(&client, &folder, "down.sql").await;
            assert_eq!(texts(&client, CATALOGUE).await, before, "{}", folder.display());
            run(&client, &folder, "up.sql").await;
        }
        before = after;
    }
}

#[tokio::test]
async fn every_migration_says_which_program_it_needs() {
    let place = TestDatabase::create().await;
    let facts = texts(
        &place.connect().await,
        "select version from schema_facts order by 1",
    )
    .await;
    let names = folders();
    let versions = names
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap()[..4].to_owned());
    assert_eq!(facts, versions.collect::<Vec<_>>());
}

#[tokio::test]
async fn every_foreign_key_has_an_index() {
    let place = TestDatabase::create().await;
    let bare = "select conrelid::regclass::text || ' ' || conname from pg_constraint c
        where contype = 'f' and connamespace = 'public'::regnamespace and not exists (
            select from pg_index i where i.indrelid = c.conrelid and i.indpred is null
            and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)";
    assert_eq!(texts(&place.connect().await, bare).await, Vec::<String>::new());
}

/// Table → (class, key), as the README lists them.
fn listed() -> BTreeMap<String, (String, String)> {
    let readme = fs::read_to_string("../../../migrations/README.md").unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|line| {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
    });
    cells
        .map(|mut cells| {
            (
                cells.next().unwrap(),
                (cells.next().unwrap(), cells.next().unwrap()),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_table_is_listed_and_keyed_as_its_class_says() {
    let place = TestDatabase::create().await;
    let keys = "select c.relname || '|' || coalesce((select string_agg(a.attname, ', ' order by k.n)
            from pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, n)
            join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
            where i.indrelid = c.oid and i.indisprimary), '')
        from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
            and c.relname not like '\\_\\_diesel%'";
    let tables = texts(&place.connect().await, keys).await;
    let found = tables
        .iter()
        .map(|line| line.split_once('|').unwrap())
        .collect::<BTreeMap<_, _>>();
    let listed = listed();
    assert_eq!(
        found
            .iter()
            .map(|(table, key)| ((*table).to_owned(), (*key).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        listed
            .iter()
            .map(|(table, (_, key))| (table.clone(), key.clone()))
            .collect(),
    );
    for (table, (class, key)) in listed {
        let first = key.split(", ").next().unwrap();
        match class.as_str() {
            "seller" => assert_eq!(first, "seller_id", "{table}"),
            "credential" if table == "families" => assert_eq!(first, "id"),
            "credential" => assert!(["family_id", "hash", "session_hash"].contains(&first), "{table}"),
            "global" => assert!(!["seller_id", "family_id"].contains(&first), "{table}"),
            other => panic!("{table} is of no class: {other}"),
        }
    }
}

#[tokio::test]
async fn the_clock_is_read_by_its_function_alone() {
    let place = TestDatabase::create().await;
    let client = place.connect().await;
    let defaults = "select pg_get_expr(adbin, adrelid) from pg_attrdef \
                    where pg_get_expr(adbin, adrelid) ~ '(now|timestamp)' and pg_get_expr(adbin, adrelid) !~ 'api_now'";
    assert_eq!(texts(&client, defaults).await, Vec::<String>::new());
    let mut sources = Vec::new();
    collect(std::path::Path::new("src"), &mut sources);
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        for word in [" now()", "(now()", "clock_timestamp", "current_timestamp"] {
            assert!(!source.contains(word), "{} asks {word}", path.display());
        }
    }
}

fn collect(folder: &std::path::Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.push(path);
        }
    }
}
