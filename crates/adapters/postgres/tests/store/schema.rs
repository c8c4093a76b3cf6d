//! Schema migrations up and down, the reported schema state, and the schema's rules: reversible, indexed, and
//! keyed by class.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adapter_postgres::{Database, MigrateError, SchemaState, finish, migrate, missing_migrations};
use testkit::{Layout, TestDatabase};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::support::{Fixture, id, is_unavailable, settings};

async fn migrated(url: &str) -> (Result<Vec<String>, MigrateError>, Vec<String>) {
    let steps = Mutex::new(Vec::new());
    let report = migrate(url, |step| steps.lock().unwrap().push(step)).await;
    (report, steps.into_inner().unwrap())
}

fn database(empty: &TestDatabase) -> Database {
    Database::new(settings(empty.url(), 2)).unwrap()
}

/// The migrations in order.
pub(crate) fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("../../../migrations").unwrap();
    let mut folders: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

pub(crate) fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

fn embedded() -> Vec<String> {
    folders().iter().map(|folder| name(folder)).collect()
}

/// Whether the schema, which fits, is finished.
async fn is_finished(database: &Database) -> bool {
    assert_eq!(database.schema_state().await.unwrap(), SchemaState::Ready);
    database.identity().await.unwrap();
    database.finished_flag().load(Ordering::Relaxed)
}

#[tokio::test]
async fn an_empty_database_is_migrated_step_by_step() {
    let empty = TestDatabase::empty().await;
    let database = database(&empty);
    assert!(database.is_empty().await.unwrap());
    assert_eq!(database.schema_state().await.unwrap(), SchemaState::Missing);
    let missing = async || missing_migrations(empty.url()).await.unwrap();
    let before = missing().await;
    assert!(before.iter().map(|one| &one.name).eq(&embedded()));
    assert!(before.iter().all(|one| !one.locks.is_empty()), "{before:?}");
    let (report, steps) = migrated(empty.url()).await;
    assert_eq!(report.unwrap(), embedded());
    let of = embedded().len();
    let expected = embedded()
        .into_iter()
        .enumerate()
        .map(|(n, name)| format!("applying {name} ({} of {of})", n + 1));
    assert_eq!(steps, expected.collect::<Vec<_>>());
    assert!(is_finished(&database).await);
    let (report, steps) = migrated(empty.url()).await;
    assert!(report.unwrap().is_empty() && steps.is_empty());
    assert!(!database.is_empty().await.unwrap());
    assert_eq!(missing().await, []);
    let undo = "analyze audit_log; delete from __diesel_schema_migrations where version = '0026'";
    empty.connect().await.batch_execute(undo).await.unwrap();
    let one = missing().await.remove(0);
    assert_eq!((&*one.locks, one.rows["audit_log"]), ("audit_log", Some(0)));
}

/// Keeps an index that is built concurrently waiting.
const SNAPSHOT: &str = "begin isolation level repeatable read; select";

/// Whether an index has been waiting for a snapshot for so many milliseconds.
async fn builds_an_index(watcher: &Client, milliseconds: u32) -> bool {
    let waiting = format!(
        "select from pg_stat_activity where datname = current_database() and query like '%index concurrently%' \
         and wait_event = 'virtualxid' and query_start < clock_timestamp() - interval '{milliseconds} ms'"
    );
    !watcher.query(&waiting, &[]).await.unwrap().is_empty()
}

#[tokio::test]
async fn the_index_of_a_killed_run_is_not_in_the_way_of_the_next() {
    let empty = TestDatabase::empty().await;
    let (reader, watcher) = (empty.connect().await, empty.connect().await);
    reader.batch_execute(SNAPSHOT).await.unwrap();
    let killed = tokio::runtime::Runtime::new().unwrap();
    let url = empty.url().to_owned();
    killed.spawn(async move { migrate(&url, drop).await });
    let until = async |expected: bool| {
        let begun = Instant::now();
        while builds_an_index(&watcher, 0).await != expected {
            assert!(begun.elapsed() < Duration::from_secs(20), "{expected}");
            sleep(Duration::from_millis(20)).await;
        }
    };
    until(true).await;
    // Its sockets are closed.
    killed.shutdown_background();
    until(false).await;
    reader.batch_execute("commit").await.unwrap();
    assert_eq!(migrated(empty.url()).await.0.unwrap().last(), embedded().last());
}

#[tokio::test]
async fn limits_of_the_role_do_not_end_the_build_of_an_index() {
    let empty = TestDatabase::empty().await;
    let (reader, watcher) = (empty.connect().await, empty.connect().await);
    let limits = "do $$ begin \
        execute format('alter database %I set statement_timeout = ''300ms''', current_database()); \
        execute format('alter database %I set lock_timeout = ''100ms''', current_database()); end $$";
    reader.batch_execute(limits).await.unwrap();
    reader.batch_execute(SNAPSHOT).await.unwrap();
    let migrating = tokio::spawn(async move { (migrated(empty.url()).await.0, empty) });
    while !builds_an_index(&watcher, 400).await {
        assert!(!migrating.is_finished());
        sleep(Duration::from_millis(20)).await;
    }
    reader.batch_execute("commit").await.unwrap();
    let (report, _empty) = migrating.await.unwrap();
    assert_eq!(report.unwrap(), embedded());
}

#[tokio::test]
async fn the_schema_state_follows_versions_and_writability() {
    let fixture = Fixture::new().await;
    let last = &embedded().pop().unwrap()[..4];
    let remove = format!("delete from __diesel_schema_migrations where version = '{last}'");
    let add = format!(
        "insert into __diesel_schema_migrations (version) values ('{last}'), ('9999'); \
         insert into schema_facts values ('9999', '0.1.0')"
    );
    for (change, expected) in [
        (&*remove, SchemaState::Behind { pending: 1 }),
        (&*add, SchemaState::Ready),
    ] {
        fixture.tamper(change).await;
        assert_eq!(fixture.database.schema_state().await.unwrap(), expected);
    }
    for table in ["schema_facts", "__diesel_schema_migrations"] {
        let remove = format!("delete from {table} where version = '9999'");
        fixture.tamper(&remove).await;
    }
    // A server that only reads is not usable, until it takes writes again: in new sessions, where a setting was changed.
    let serving = fixture.another(1);
    for (value, expected) in [("on", SchemaState::ReadOnly), ("off", SchemaState::Ready)] {
        fixture.set("default_transaction_read_only", value).await;
        assert_eq!(serving.schema_state().await.unwrap(), expected);
    }
    // Nor is one where single statements have a stricter isolation.
    let serializable = SchemaState::NotReadCommitted {
        isolation: "serializable".to_owned(),
    };
    for (value, expected) in [
        ("read uncommitted", SchemaState::Ready),
        ("serializable", serializable),
    ] {
        fixture.set("default_transaction_isolation", value).await;
        let next = fixture.another(1);
        assert_eq!(next.schema_state().await.unwrap(), expected);
    }
}

/// Beside the tables stand another's, in their schema and in one of its own.
const RIGHTS: &str = "
    grant select, insert, update, delete on all tables in schema public to pg_monitor;
    revoke insert, update, delete on schema_facts, __diesel_schema_migrations from pg_monitor;
    alter table __diesel_schema_migrations enable row level security;
    create policy reads on __diesel_schema_migrations for select using (true);
    alter table sellers enable row level security;
    create policy of_others on sellers to pg_read_all_settings using (false);
    create policy of_strangers on sellers to pg_signal_backend using (true);
    create policy narrower on sellers as restrictive using (true);
    create policy elsewhere on links using (true);
    create table guests (); alter table guests enable row level security;
    create schema own; grant usage on schema own to pg_monitor;
    create table own.links (); alter table own.links enable row level security;
    create function own.api_now() returns int language sql return 1;
    revoke execute on function own.api_now() from public";

#[tokio::test]
async fn lacking_rights_and_policies_are_named_by_the_statements_that_give_them() {
    let test_database = TestDatabase::create().await;
    let owner = test_database.connect().await;
    // A role that every server has and that owns nothing.
    let role = format!("{}?options=-c%20role%3Dpg_monitor", test_database.url());
    let serving = |path: &str| {
        let url = format!("{role}%20-c%20search_path%3D{path}");
        Database::new(settings(&url, 2)).unwrap()
    };
    owner.batch_execute(RIGHTS).await.unwrap();
    let here = serving("public");
    let tables = "select relname::text from pg_class where relnamespace = 'public'::regnamespace \
        and relkind in ('r', 'p', 'v') and relname <> 'guests'";
    for table in texts(&owner, tables).await {
        for (change, is_lacking) in [("revoke select on", true), ("grant select on", false)] {
            let role = if is_lacking { "from" } else { "to" };
            let change = format!("{change} {table} {role} pg_monitor");
            owner.batch_execute(&change).await.unwrap();
            let statements = here.missing_grants().await.unwrap();
            assert_eq!(statements.is_some(), is_lacking, "{change}");
        }
    }
    let policy = "CREATE POLICY pg_monitor ON sellers TO pg_monitor USING (true);";
    for (change, expected) in [
        // `pg_monitor` is a member of the other policy's role: that policy is for it too.
        ("select", ""),
        (
            "revoke insert on links from pg_monitor",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO pg_monitor; \
             ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO pg_monitor;",
        ),
        ("grant insert on links to pg_monitor", ""),
        (
            "revoke execute on function api_now() from public",
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO pg_monitor; \
             ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT EXECUTE ON FUNCTIONS TO pg_monitor;",
        ),
        ("grant execute on function api_now() to public", ""),
        ("drop policy of_others on sellers", policy),
        ("create policy reads on sellers for select using (true)", policy),
        (policy, ""),
        (
            "revoke usage on schema public from public",
            "GRANT USAGE ON SCHEMA public TO pg_monitor;",
        ),
        ("grant usage on schema public to public", ""),
    ] {
        owner.batch_execute(change).await.unwrap();
        let statements = here.missing_grants().await.unwrap();
        assert_eq!(statements.unwrap_or_default(), expected, "{change}");
    }
    // The search_path leads nowhere; to a schema that has no tables yet; to one that has.
    let own = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA own TO";
    for (change, path, expected, end) in [
        (
            "select",
            "nowhere",
            "ALTER ROLE postgres IN DATABASE",
            "SET search_path = public;",
        ),
        ("select", "own", "", ""),
        ("create table own.schema_facts ()", "own", own, ""),
    ] {
        owner.batch_execute(change).await.unwrap();
        let statements = serving(path).missing_grants().await.unwrap();
        let statements = statements.unwrap_or_default();
        assert!(
            statements.starts_with(expected) && statements.ends_with(end),
            "{path}: {statements}"
        );
        assert_eq!(statements.is_empty(), expected.is_empty(), "{path}: {statements}");
    }
}

#[tokio::test]
async fn a_connection_that_meets_a_locked_table_leaves_nothing_behind_in_the_server() {
    let fixture = Fixture::new().await;
    let serving = fixture.another(1);
    fixture.tamper("begin; lock table instance").await;
    is_unavailable(serving.schema_state().await);
    fixture.nothing_waits().await;
    fixture.tamper("rollback").await;
    assert_eq!(serving.schema_state().await.unwrap(), SchemaState::Ready);
}

#[tokio::test]
async fn a_schema_that_an_older_program_may_use_is_finished_on_request() {
    let fixture = Fixture::new().await;
    let facts = async || {
        let raised = "select oldest_binary from schema_facts where oldest_binary <> '0.1.0'";
        fixture.texts(raised).await
    };
    for unfinished in [
        "update schema_facts set oldest_binary = '0.1.0'",
        "delete from instance where key = 'journal'",
    ] {
        fixture.tamper(unfinished).await;
    }
    assert!(!is_finished(&fixture.database).await);
    for _ in 0..2 {
        finish(fixture.test_database.url()).await.unwrap();
        let another = fixture.another(1);
        assert!(!another.finished_flag().load(Ordering::Relaxed));
        // Any connection looks.
        assert_eq!(another.schema_state().await.unwrap(), SchemaState::Ready);
        assert!(another.finished_flag().load(Ordering::Relaxed));
        assert_eq!(facts().await, ["1.1.0"]);
    }
    assert!(is_finished(&fixture.database).await);
    fixture
        .tamper("update schema_facts set oldest_binary = '1.10.0' where oldest_binary = '1.1.0'")
        .await;
    finish(fixture.test_database.url()).await.unwrap();
    assert_eq!(facts().await, ["1.10.0"], "it is not lowered");
}

#[tokio::test]
async fn a_failed_migration_is_named_and_rolled_back() {
    let empty = TestDatabase::empty().await;
    let client = empty.connect().await;
    let rival = "create table offers (mine int)";
    client.batch_execute(rival).await.unwrap();
    let (report, _) = migrated(empty.url()).await;
    let MigrateError::Failed { name, .. } = report.unwrap_err() else {
        panic!("another failure")
    };
    assert!(name.ends_with("_offers"), "{name}");
    let state = database(&empty).schema_state().await.unwrap();
    assert!(matches!(state, SchemaState::Behind { pending: 1.. }), "{state:?}");
    client.batch_execute("drop table offers").await.unwrap();
    // The pending migrations are applied now, the failed one first.
    let applied = migrated(empty.url()).await.0.unwrap();
    assert_eq!(applied.first(), Some(&name));
    let pending = "delete from __diesel_schema_migrations where version = '0030'";
    for statement in [pending, "begin", "lock table offers"] {
        client.batch_execute(statement).await.unwrap();
    }
    let MigrateError::Failed { name, cause } = migrated(empty.url()).await.0.unwrap_err() else {
        panic!("another failure")
    };
    assert!(
        name == "0030_external_ids" && cause.to_string().contains("run it again"),
        "{name}: {cause}"
    );
    let (report, _) = migrated("postgres://nobody@127.0.0.1:1/nothing").await;
    assert!(matches!(report, Err(MigrateError::Unreachable(_))));
    let (report, _) = migrated("mysql://x").await;
    assert!(matches!(report, Err(MigrateError::Url(_))));
}

/// The whole content of a schema as text: columns, constraints, indexes, functions, table settings.
const CATALOG: &str = "
    select 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || case when a.attnotnull then ' not null' else '' end || ' ' || a.attidentity::text
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where n.nspname = 'public' and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'S', 'v')
    union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select 'view ' || viewname || ' ' || definition from pg_views where schemaname = 'public'
    union all select 'function ' || pg_get_functiondef(oid) || coalesce(proacl::text, '') from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'table ' || relname || ' ' || coalesce(array_to_string(reloptions, ','), '')
      from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'";

async fn texts(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn down_restores_the_schema_before_up() {
    let empty = TestDatabase::empty().await;
    let client = empty.connect().await;
    let run = async |folder: &Path, file: &str| {
        let sql = fs::read_to_string(folder.join(file)).unwrap();
        let alone = file == "up.sql" && is_alone(folder);
        for sql in sql.split_inclusive(if alone { ";\n" } else { "\0" }) {
            let done = client.batch_execute(sql).await;
            done.unwrap_or_else(|error| panic!("{}/{file}: {error:?}", folder.display()));
        }
    };
    let catalog = format!("{CATALOG} order by 1");
    let facts = "select version || oldest_binary from schema_facts order by 1";
    let mut before = Vec::new();
    for folder in folders() {
        run(&folder, "up.sql").await;
        if !before.is_empty() {
            run(&folder, "down.sql").await;
            let undone = [texts(&client, &catalog).await, texts(&client, facts).await];
            assert_eq!(undone, *before, "{}", folder.display());
            run(&folder, "up.sql").await;
        }
        // As after a run that broke off before it was recorded.
        if is_alone(&folder) && name(&folder).as_str() > "0025" {
            run(&folder, "up.sql").await;
        }
        before = vec![texts(&client, &catalog).await, texts(&client, facts).await];
    }
    let versions: Vec<_> = embedded().iter().map(|name| name[..4].to_owned()).collect();
    let stored = "select version from schema_facts order by 1";
    assert_eq!(texts(&client, stored).await, versions);
    for folder in folders().iter().rev() {
        run(folder, "down.sql").await;
    }
    assert_eq!(texts(&client, &catalog).await, Vec::<String>::new());
}

#[tokio::test]
async fn no_function_runs_as_its_owner_with_a_path_that_its_caller_can_fill() {
    let fixture = Fixture::new().await;
    let open = "select proname::text from pg_proc where pronamespace = 'public'::regnamespace and prosecdef \
        and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']";
    assert_eq!(fixture.texts(open).await, Vec::<String>::new());
    let public = "select proname::text from pg_proc where pronamespace = 'public'::regnamespace and prosecdef \
        and has_function_privilege('public', oid, 'execute')";
    assert_eq!(fixture.texts(public).await, Vec::<String>::new());
}

/// A login without any right has the owner plant an operator's token: its own `pg_class` stands before the
/// system's.
const ATTACK: &str = "
    create function pg_temp.plant() returns oid language plpgsql as $$ begin
        insert into public.operator_tokens (id, name, hash) values (gen_random_uuid(), 'planted', sha256('x')) on conflict do nothing;
        return 1259;
    end $$;
    create temporary view pg_class as select pg_temp.plant() as oid, 'r'::\"char\" as relkind, 0 as relpages,
        (select proowner from pg_proc where proname = 'analyze_grown_tables') as relowner,
        (select pronamespace from pg_proc where proname = 'analyze_grown_tables') as relnamespace;
    select public.analyze_grown_tables()";

#[tokio::test]
async fn a_login_without_rights_cannot_act_as_the_owner() {
    let fixture = Fixture::new().await;
    let [stranger, shop] = ["stranger", "shop"].map(|name| format!("{name}_{}", id().simple()));
    let roles = format!("create role {stranger}; create role {shop}; grant insert on offers to {shop}");
    fixture.tamper(&roles).await;
    let attack = async || {
        let client = fixture.test_database.connect().await;
        let as_stranger = format!("set session authorization {stranger}");
        client.batch_execute(&as_stranger).await.unwrap();
        let error = client.batch_execute(ATTACK).await.err();
        let planted = fixture.rows_of("operator_tokens").await;
        fixture.tamper("delete from operator_tokens").await;
        let error = error.map(|error| format!("{error:?}"));
        (planted, error.unwrap_or_default())
    };
    let mut folders = folders().into_iter();
    let folder = folders.find(|folder| name(folder).starts_with("0019")).unwrap();
    let migration = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    fixture.tamper(&migration("down.sql")).await;
    assert_eq!(attack().await.0, 1, "the attack works on the function as it was");
    fixture.tamper(&migration("up.sql")).await;
    let (planted, error) = attack().await;
    let is_denied = error.contains("permission denied for function");
    assert!(planted == 0 && is_denied, "{error}");

    // The role that fills tables got the right. With it, the attack has no effect.
    fixture.set("role", &shop).await;
    let analyzed = fixture.another(1).analyze_grown_tables().await;
    assert_eq!(analyzed.unwrap(), None);
    fixture.set("role", &stranger).await;
    let missing = fixture.another(1).analyze_grown_tables().await.unwrap();
    let grant = format!("GRANT EXECUTE ON FUNCTION analyze_grown_tables() TO {stranger}");
    assert_eq!(missing.as_ref(), Some(&grant));
    fixture.tamper(&grant).await;
    assert_eq!(fixture.another(1).analyze_grown_tables().await.unwrap(), None);
    fixture.set("role", "none").await;
    assert_eq!(attack().await, (0, String::new()));
}

/// Table → (class, key), as listed in the README.
fn listed() -> BTreeMap<String, (String, String)> {
    let readme = fs::read_to_string("../../../migrations/README.md").unwrap();
    let cells = |line: &str| -> Option<(String, (String, String))> {
        let mut cells = line
            .strip_prefix("| `")?
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned());
        Some((cells.next()?, (cells.next()?, cells.next()?)))
    };
    readme.lines().filter_map(cells).collect()
}

#[tokio::test]
async fn every_table_is_listed_and_keyed_by_its_class_and_every_foreign_key_has_an_index() {
    let fixture = Fixture::new().await;
    let keys = "select c.relname::text, coalesce((select string_agg(a.attname, ', ' order by k.n)
            from pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, n)
            join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
            where i.indrelid = c.oid and i.indisprimary), '')
        from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
            and c.relname not like '\\_\\_diesel%'";
    let rows = fixture.rows(keys).await;
    let keyed: BTreeMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let listed = listed();
    let keys = listed
        .iter()
        .map(|(table, (_, key))| (table.clone(), key.clone()));
    assert_eq!(keyed, keys.collect());
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
    let bare = "select conrelid::regclass::text || ' ' || conname from pg_constraint c
        where contype = 'f' and connamespace = 'public'::regnamespace and not exists (
            select from pg_index i where i.indrelid = c.conrelid and i.indpred is null
            and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)";
    assert_eq!(fixture.texts(bare).await, Vec::<String>::new());
}

/// The tables that Rust code names, in the words of Diesel's `table!`.
const TABLES: &str = "
    with tables as (
        select oid, relname::text from pg_class
        where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not in
            ('__diesel_schema_migrations', 'last_uses', 'personal_tokens', 'schema_facts', 'subscription_quota')),
    columns as (
        select attrelid, attnum, attname, format(case when attnotnull then '%s' else 'Nullable<%s>' end, format(
            case when t.typelem <> 0 and t.typlen = -1 then 'Array<%s>' else '%s' end,
            case ltrim(t.typname, '_') when 'uuid' then 'Uuid' when 'text' then 'Text' when 'bool' then 'Bool'
                when 'bytea' then 'Binary' when 'int2' then 'SmallInt' when 'int4' then 'Integer' when 'int8' then 'BigInt'
                when 'json' then 'Json' when 'timestamptz' then 'Timestamptz' else t.typname end)) as type
        from pg_attribute a join pg_type t on t.oid = a.atttypid where attnum > 0 and not attisdropped)
    select format(E'diesel::table! {\n    %s (%s) {\n%s\n    }\n}\n', relname,
        (select string_agg(attname, ', ' order by n) from pg_constraint, unnest(conkey) with ordinality k (key, n)
            join columns on attnum = key where attrelid = tables.oid and conrelid = tables.oid and contype = 'p'),
        (select string_agg(format('        %s -> %s,', attname, type), E'\n' order by attnum) from columns
            where attrelid = tables.oid))
    from tables order by relname";

#[tokio::test]
async fn the_query_builder_knows_the_tables_as_they_are() {
    if TestDatabase::layout() != Layout::Single {
        return;
    }
    let tables = Fixture::new().await.texts(TABLES).await;
    let path = "src/schema.rs";
    let known = fs::read_to_string(path).unwrap();
    let (head, _) = known.split_once("diesel::table!").unwrap();
    let made = format!("{head}{}", tables.join("\n"));
    if std::env::var_os("RENEW").is_some() {
        fs::write(path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap() == made,
        "`RENEW=1 cargo test -p adapter-postgres --test store -- schema::` makes {path} from the migrated schema"
    );
}

#[tokio::test]
async fn the_clock_is_read_only_through_api_now() {
    let fixture = Fixture::new().await;
    let defaults = "select pg_get_expr(adbin, adrelid) from pg_attrdef \
        where pg_get_expr(adbin, adrelid) ~ '(now|timestamp)' and pg_get_expr(adbin, adrelid) !~ 'api_now'";
    assert_eq!(fixture.texts(defaults).await, Vec::<String>::new());
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            // Between `$$` are commands for Citus's workers, which judge what they prepared by their own
            // clocks.
            let source = source.split("$$").step_by(2).collect::<String>();
            for word in [" now()", "(now()", "clock_timestamp", "current_timestamp"] {
                assert!(!source.contains(word), "{} reads {word}", path.display());
            }
        }
    }
}

/// Whether its statements run one by one, outside of a transaction.
fn is_alone(folder: &Path) -> bool {
    folder.join("metadata.toml").exists()
}
