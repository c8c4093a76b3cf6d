//! Migrations are compatible with the previous program version during a rollout.

use std::fs;

use crate::schema::{folders, name};

/// The last migration of the first release: no older program was ever deployed with it.
const FIRST_RELEASE: &str = "0013";
/// Released with inline checks, which scanned a small table.
const SCANNED: [&str; 2] = ["0015", "0021"];

/// A migration's statements in lower case, without comments and quoted text.
fn statements(sql: &str) -> Vec<String> {
    let code = sql
        .lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let code = code.collect::<Vec<_>>().join(" ");
    let unquoted = |text: &str, quote: &str| text.split(quote).step_by(2).collect::<Vec<_>>().join(" ");
    let code = unquoted(&unquoted(&code, "$$"), "'").to_lowercase();
    let tidy = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    code.split(';')
        .map(tidy)
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// Why a statement is unsafe during a rollout.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The previous program version may fail after the change.
    Breaks,
    /// Other transactions would wait for a long statement.
    Blocks,
    /// Citus refuses it on a distributed table.
    Refused,
}

/// The tables that are distributed on Citus.
const DISTRIBUTED: [&str; 2] = ["offers", "seller_orders"];

/// The table that a statement alters, and its changes.
fn altered(statement: &str) -> Option<(&str, Vec<String>)> {
    let (table, changes) = statement.strip_prefix("alter table ")?.split_once(' ')?;
    let changes = changes.replace(", add ", "\nadd ").replace(", drop ", "\ndrop ");
    Some((table, changes.lines().map(ToOwned::to_owned).collect()))
}

/// The fault of one change of a table that has rows, among all changes of it by the migration.
fn fault_of_change(change: &str, all: &[String]) -> Option<Fault> {
    if let Some(column) = change.strip_prefix("add column ") {
        let has = |word| column.contains(word);
        if has(" check ") || has(" references ") || has(" unique") || has(" generated ") {
            return Some(Fault::Blocks);
        }
        return (has("not null") && !has("default")).then_some(Fault::Breaks);
    }
    let constraint = change.strip_prefix("add constraint ");
    let Some((name, check)) = constraint.and_then(|rest| rest.split_once(" check ")) else {
        return (!change.starts_with("drop constraint ")).then_some(Fault::Breaks);
    };
    // It replaces one of the same name, which allowed no more, or is about a new column, which no older
    // program writes: the author's promise.
    let is_promised = all.iter().any(|other| {
        let of = other.split(' ').nth(2).unwrap_or(other);
        other.starts_with("drop constraint ") && of == name
            || other.starts_with("add column ") && check.contains(of)
    });
    let scans = (!check.ends_with(" not valid")).then_some(Fault::Blocks);
    if is_promised { scans } else { Some(Fault::Breaks) }
}

/// The statements of a migration that are not known to be safe. Safe are purely additive ones, those on
/// tables created in the same migration, and those that drop an index or a check.
fn faults(sql: &str) -> Vec<(String, Fault)> {
    let all = statements(sql);
    let table = |statement: &str, lead: &str| {
        let (_, rest) = statement.split_once(lead)?;
        rest.split([' ', '(']).next().map(ToOwned::to_owned)
    };
    let created: Vec<_> = all.iter().filter_map(|s| table(s, "create table ")).collect();
    let bounded = all
        .iter()
        .any(|statement| statement.starts_with("set local lock_timeout"));
    let fault = |statement: &String| {
        let starts = |lead: &str| statement.starts_with(lead);
        let on_created = |lead| table(statement, lead).is_some_and(|table| created.contains(&table));
        // A block grants rights, and does nothing else. A view that is replaced keeps its columns: PostgreSQL sees to it.
        let harmless = [
            "set local ",
            "create table ",
            "create view ",
            "create or replace view ",
            "create function ",
            "create or replace function analyze_grown_tables()",
            "revoke execute on function analyze_grown_tables() from public",
            "do",
            "insert into ",
            "comment on ",
            "drop index ",
        ];
        if harmless.into_iter().any(starts) {
            None
        } else if starts("create ") && statement.contains(" index ") {
            match (on_created(" on "), statement.contains(" concurrently ")) {
                (false, false) => Some(Fault::Blocks),
                (false, true) if statement.contains(" unique ") => Some(Fault::Breaks),
                _ => None,
            }
        } else if let Some((table, changes)) = altered(statement) {
            let all = all.iter().filter_map(|other| altered(other));
            let all = all.filter(|(other, _)| *other == table);
            let all: Vec<_> = all.flat_map(|(_, changes)| changes).collect();
            let constrains = changes.iter().any(|change| change.starts_with("add constraint "));
            let is_refused = constrains && changes.len() > 1 && DISTRIBUTED.contains(&table);
            match (on_created("alter table "), bounded) {
                (true, _) => None,
                (false, false) => Some(Fault::Blocks),
                (false, true) if is_refused => Some(Fault::Refused),
                (false, true) => changes.iter().find_map(|change| fault_of_change(change, &all)),
            }
        } else {
            let is_fine = starts("update ") && on_created("update ")
                || starts("alter type ") && statement.ends_with(" add value");
            (!is_fine).then_some(Fault::Breaks)
        }
    };
    all.iter()
        .filter_map(|statement| Some((statement.clone(), fault(statement)?)))
        .collect()
}

/// During a rollout, the previous version runs on the new schema (`migrations/README.md`, "Rules for a
/// change").
#[test]
fn incompatible_migrations_raise_the_oldest_program() {
    let mut newest: Vec<u32> = Vec::new();
    for folder in folders() {
        let (name, sql) = (name(&folder), fs::read_to_string(folder.join("up.sql")).unwrap());
        let fact = format!("insert into schema_facts values ('{}', '", &name[..4]);
        let oldest = sql
            .trim_end()
            .rsplit_once(&fact)
            .and_then(|(_, oldest)| oldest.split_once("')"));
        let (oldest, end) = oldest.unwrap_or_else(|| panic!("{name}: the fact is not last"));
        assert!([";", " on conflict do nothing;"].contains(&end), "{name}: {end}");
        let oldest: Vec<u32> = oldest.split('.').map(|part| part.parse().unwrap()).collect();
        assert!(oldest >= newest, "{name}");
        let faulty = faults(&sql);
        let only_breaks = faulty.iter().all(|(_, fault)| *fault == Fault::Breaks);
        assert!(
            &name[..4] <= FIRST_RELEASE
                || SCANNED.contains(&&name[..4])
                || faulty.is_empty()
                || only_breaks && oldest > newest,
            "{name}: {faulty:?}, and an older program may run: wait for a release, or raise the oldest program"
        );
        newest = oldest;
    }
}
