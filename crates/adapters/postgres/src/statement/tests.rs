//! Every statement of the files against the migrated schema, on either layout: its parameters and columns
//! must be those that the code declares.

use std::{fs, path::PathBuf};

use diesel::pg::PgQueryBuilder;
use diesel::query_builder::QueryBuilder as _;
use diesel::{QueryResult, sql_query};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _};
use futures_util::future::BoxFuture;
use testkit::{Layout, TestDatabase};

/// A statement that `statements!` declared.
pub(crate) struct Declared {
    pub(crate) place: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: fn() -> String,
    /// The SQL types of the parameters, as written.
    pub(crate) parameters: &'static [&'static str],
    /// Reads the rows of another statement as this one's; none if it has no rows.
    pub(crate) read: Option<Read>,
}

pub(crate) type Read = for<'c> fn(&'c mut AsyncPgConnection, String) -> BoxFuture<'c, QueryResult<()>>;

inventory::collect!(Declared);

/// The text of a statement that is sent.
pub(crate) fn sent<Parameters: 'static, Row>(statement: &super::Statement<Parameters, Row>) -> String {
    let mut out = PgQueryBuilder::new();
    statement.write(&mut out).unwrap();
    out.finish()
}

/// Reads the rows of a query as those of a statement.
pub(crate) fn read<Row>(connection: &mut AsyncPgConnection, query: String) -> BoxFuture<'_, QueryResult<()>>
where
    Row: diesel::QueryableByName<diesel::pg::Pg> + Send + 'static,
{
    Box::pin(async move { sql_query(query).load::<Row>(connection).await.map(drop) })
}

/// PostgreSQL's name of a type of Diesel's.
fn name_of(written: &str) -> String {
    let written = written.replace(' ', "");
    let inside = |generic: &str| {
        written
            .strip_prefix(generic)?
            .strip_suffix('>')
            .map(ToOwned::to_owned)
    };
    if let Some(element) = inside("Array<") {
        return format!("_{}", name_of(&element));
    }
    if let Some(inner) = inside("Nullable<") {
        return name_of(&inner);
    }
    let names = [
        ("SqlUuid", "uuid"),
        ("Text", "text"),
        ("Bool", "bool"),
        ("Binary", "bytea"),
        ("SmallInt", "int2"),
        ("Integer", "int4"),
        ("BigInt", "int8"),
        ("Double", "float8"),
        ("Json", "json"),
        ("Timestamptz", "timestamptz"),
        ("Interval", "interval"),
    ];
    let known = names.iter().find(|(diesel, _)| *diesel == written);
    known
        .unwrap_or_else(|| panic!("{written} has no name here"))
        .1
        .to_owned()
}

/// A value of a type, such that few other types can read it.
fn sample(of: &str) -> &'static str {
    match of {
        "uuid" => "'0190c5f2-7d1e-7c3a-9f4b-2a6d8e1b3c5f'",
        "text" | "name" | "varchar" => "'a'",
        "bool" => "true",
        "bytea" => r"'\xff'",
        "int2" | "int4" | "int8" => "1",
        "float8" => "1.5",
        "json" | "jsonb" => "'{}'",
        "timestamptz" => "'2026-03-01T10:00:00Z'",
        "interval" => "'1s'",
        of if of.starts_with('_') => "'{}'",
        of => panic!("{of} has no sample here"),
    }
}

/// The statements that this layout knows: Citus's own functions are there alone.
fn declared() -> impl Iterator<Item = &'static Declared> {
    let is_here = |one: &&Declared| {
        let text = (one.text)();
        let of_citus = ["run_command_on_workers", "from pg_dist_node"];
        TestDatabase::layout() == Layout::Citus || !of_citus.iter().any(|own| text.contains(own))
    };
    inventory::iter::<Declared>.into_iter().filter(is_here)
}

#[tokio::test]
async fn parameters_and_columns_are_those_that_the_code_declares() {
    let database = TestDatabase::create().await;
    let client = database.connect().await;
    let mut connection = AsyncPgConnection::establish(database.url()).await.unwrap();
    let mut faults = Vec::new();
    for declared in declared() {
        let mut fault = |what: String| faults.push(format!("{}, {}: {what}", declared.place, declared.name));
        let prepared = match client.prepare(&(declared.text)()).await {
            Ok(prepared) => prepared,
            Err(error) => {
                fault(error.as_db_error().map_or(error.to_string(), ToString::to_string));
                continue;
            }
        };
        let types: Vec<_> = prepared.params().iter().map(|of| of.name().to_owned()).collect();
        let written: Vec<_> = declared.parameters.iter().map(|of| name_of(of)).collect();
        if types != written {
            fault(format!("the parameters are {types:?}, not {written:?}"));
        }
        let columns = prepared.columns().iter();
        let samples = columns.map(|column| {
            let of = column.type_().name();
            format!("{}::{of} as \"{}\"", sample(of), column.name())
        });
        match (declared.read, samples.collect::<Vec<_>>().join(", ")) {
            (None, _) => {}
            (Some(read), samples) => {
                if let Err(error) = read(&mut connection, format!("select {samples}")).await {
                    fault(format!("a row is not read: {error}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// During a rollout the schema is newer than the programs that run. PostgreSQL refuses a prepared statement
/// whose columns have changed.
#[tokio::test]
async fn a_new_column_of_any_table_changes_no_statements_columns() {
    if TestDatabase::layout() != Layout::Single {
        return;
    }
    let database = TestDatabase::create().await;
    let client = database.connect().await;
    for (n, one) in (0..).zip(declared()) {
        client
            .batch_execute(&format!("prepare statement_{n} as {}", (one.text)()))
            .await
            .unwrap();
    }
    let add = "do $$ declare t regclass; begin
        for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
        loop execute format('alter table %s add column added_later text', t); end loop; end $$";
    client.batch_execute(add).await.unwrap();
    let mut faults = Vec::new();
    for (n, one) in (0..).zip(declared()) {
        let nulls = vec!["null"; one.parameters.len()].join(", ");
        let values = if nulls.is_empty() {
            nulls
        } else {
            format!("({nulls})")
        };
        // It makes the plan again, as an execution does.
        let planned = client
            .batch_execute(&format!("explain execute statement_{n} {values}"))
            .await;
        faults.extend(planned.err().map(|error| {
            format!(
                "{}, {}: {}",
                one.place,
                one.name,
                error.as_db_error().map_or("", |error| error.message())
            )
        }));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_statement_of_the_files_is_declared() {
    let (mut folders, mut names) = (vec![PathBuf::from("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sql") {
                let text = fs::read_to_string(path).unwrap();
                names.extend(
                    text.lines()
                        .filter_map(|line| line.strip_prefix("-- name: "))
                        .map(ToOwned::to_owned),
                );
            }
        }
    }
    let mut declared: Vec<_> = inventory::iter::<Declared>
        .into_iter()
        .map(|one| one.name)
        .collect();
    names.sort_unstable();
    declared.sort_unstable();
    assert_eq!(declared, names);
}
