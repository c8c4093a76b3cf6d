//! While a release rolls out, the version before works on its schema too: migrations add, and one that takes away or binds says that
//! older programs cannot work with it (`migrations/README.md`, "Rules for a change").

use std::fs;

/// The last migration of the first release: nothing older was ever deployed beside it.
const FIRST_RELEASE: &str = "0013";

/// Kinds of things whose end the version before would notice. Without an index it is slower, and no more.
const USED: [&str; 9] = [
    "table",
    "view",
    "materialized",
    "function",
    "procedure",
    "type",
    "sequence",
    "trigger",
    "schema",
];

/// What the version before could not bear in a statement.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    TakesAway,
    Binds,
    /// Nobody can write meanwhile, however long it takes.
    Locks,
    /// It would wait for a lock for ever, and everybody behind it.
    Queues,
}

/// A migration's statements, in small letters, without comments and what stands in quotes.
fn statements(sql: &str) -> Vec<String> {
    let (mut text, mut rest) = (String::new(), sql);
    while let Some(at) = rest.find(['\'', '$', '-']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let (opening, closing) = match from {
            _ if from.starts_with("--") => ("--", "\n"),
            _ if from.starts_with("$$") => ("$$", "$$"),
            _ if from.starts_with('\'') => ("'", "'"),
            _ => ("", ""),
        };
        if opening.is_empty() {
            text.push_str(&from[..1]);
            rest = &from[1..];
            continue;
        }
        let inside = &from[opening.len()..];
        let end = inside
            .find(closing)
            .map_or(inside.len(), |end| end + closing.len());
        text.push(' ');
        rest = &inside[end..];
    }
    text.push_str(rest);
    let tidy = |statement: &str| {
        let words = statement.split_whitespace().collect::<Vec<_>>();
        words.join(" ").to_lowercase()
    };
    text.split(';').map(tidy).filter(|s| !s.is_empty()).collect()
}

/// The parts of a list, of which one may have commas in brackets.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let split = list.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    split.map(str::trim).collect()
}

/// The word after the first of these, and what follows it.
fn after<'a>(statement: &'a str, leads: &[&str]) -> Option<(&'a str, &'a str)> {
    let rest = leads.iter().find_map(|lead| statement.split_once(lead))?.1;
    let rest = rest.trim_start_matches("if exists ").trim_start_matches("only ");
    let end = rest.find([' ', '(']).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim_start()))
}

/// What is wrong with one change of a table.
fn of_change(change: &str) -> Option<Fault> {
    let has = |words: &str| format!(" {change} ").contains(&format!(" {words} "));
    if change.starts_with("rename")
        || has("drop column")
        || has("drop default")
        || (change.starts_with("alter") && has("type"))
    {
        return Some(Fault::TakesAway);
    }
    if change.starts_with("drop") {
        return (!has("constraint")).then_some(Fault::TakesAway);
    }
    let is_column = change.starts_with("add column");
    let is_owed = has("not null") && !has("default") && !has("generated");
    let binds = match change {
        _ if is_column => is_owed,
        _ if change.starts_with("add") => true,
        _ => has("set not null"),
    };
    binds.then_some(Fault::Binds)
}

/// All that the version before could not bear in a migration.
fn faults(sql: &str) -> Vec<Fault> {
    let all = statements(sql);
    let made = |table: &str| {
        let created = all.iter().filter_map(|s| after(s, &["create table "]));
        created.into_iter().any(|(name, _)| name == table)
    };
    let bounded = all.iter().any(|s| s.starts_with("set local lock_timeout"));
    let mut found = Vec::new();
    for statement in &all {
        let changes_type = statement.starts_with("alter type") && !statement.contains(" add value");
        found.extend(changes_type.then_some(Fault::TakesAway));
        if let Some((kind, _)) = statement
            .strip_prefix("drop ")
            .and_then(|rest| rest.split_once(' '))
        {
            found.extend(USED.contains(&kind).then_some(Fault::TakesAway));
        }
        if let Some((table, changes)) = after(statement, &["alter table "])
            && !made(table)
        {
            found.extend(parts(changes).into_iter().filter_map(of_change));
            found.extend((!bounded).then_some(Fault::Queues));
        }
        if let Some((table, _)) = after(statement, &[" on "])
            && statement.starts_with("create")
            && statement.contains(" index ")
            && !made(table)
        {
            found.extend(statement.contains(" unique ").then_some(Fault::Binds));
            found.extend((!statement.contains(" concurrently ")).then_some(Fault::Locks));
        }
        for verb in ["update ", "delete from ", "truncate "] {
            let changed = statement
                .strip_prefix(verb)
                .and_then(|_| after(statement, &[verb]));
            found.extend(
                changed
                    .filter(|(table, _)| !made(table))
                    .map(|_| Fault::TakesAway),
            );
        }
    }
    found
}

/// The migrations by their numbers, in order, with what each does and the oldest program that can work with the schema then.
fn migrations() -> Vec<(String, String, Vec<u32>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("../../../migrations").unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap().to_str().unwrap();
        let number = name.split_once('_').unwrap().0.to_owned();
        let sql = fs::read_to_string(folder.join("up.sql")).unwrap();
        let fact = format!("insert into schema_facts values ('{number}', '");
        let (_, oldest) = sql
            .trim_end()
            .rsplit_once(&fact)
            .unwrap_or_else(|| panic!("{name}: no fact"));
        let oldest = oldest
            .strip_suffix("');")
            .unwrap_or_else(|| panic!("{name}: the fact is last"));
        let oldest = oldest.split('.').map(|part| part.parse().unwrap()).collect();
        all.push((number, sql, oldest));
    }
    all.sort();
    all
}

#[test]
fn what_the_version_before_could_not_bear_raises_the_oldest_program() {
    let all = migrations();
    for (before, (number, sql, oldest)) in all.iter().zip(all.iter().skip(1)) {
        assert!(*oldest >= before.2, "{number}");
        let found = faults(sql);
        if number.as_str() <= FIRST_RELEASE {
            continue;
        }
        let lasting = |fault: &Fault| matches!(fault, Fault::Locks | Fault::Queues);
        assert!(!found.iter().any(lasting), "{number}: {found:?}");
        assert!(
            found.is_empty() || *oldest > before.2,
            "{number}: {found:?}, and an older program may run: wait for a release, or raise the oldest program"
        );
    }
}

#[test]
fn statements_are_told_apart() {
    let bounded = |sql: &str| format!("set local lock_timeout = '2s'; {sql}");
    for adds in [
        "alter table offers add column note text, add column n numeric(3, 2) not null default 0",
        "alter table offers drop constraint offers_price_check",
        "create table notes (id uuid primary key); create unique index notes_key on notes (id); alter table notes add check (true)",
        "create index concurrently offers_ean_idx on offers (ean)",
        "drop index offers_newest_idx; -- drop table offers;",
        "comment on table offers is 'drop table offers; isn''t meant'",
        "create function f() returns text language sql as $$ drop table offers; $$",
        "alter type mood add value 'merry'",
        "insert into notes select id from offers",
    ] {
        assert_eq!(faults(&bounded(adds)), [], "{adds}");
    }
    for (sql, fault) in [
        ("drop table offers", Fault::TakesAway),
        ("DROP  Function api_now()", Fault::TakesAway),
        ("alter table offers drop column ean", Fault::TakesAway),
        (
            "alter table only offers rename column ean to gtin",
            Fault::TakesAway,
        ),
        (
            "alter table offers alter column stock type bigint",
            Fault::TakesAway,
        ),
        (
            "alter table offers alter column stock drop default",
            Fault::TakesAway,
        ),
        ("alter type mood rename value 'merry' to 'glad'", Fault::TakesAway),
        ("update offers set stock = 0", Fault::TakesAway),
        ("truncate offers", Fault::TakesAway),
        ("alter table offers add column note text not null", Fault::Binds),
        ("alter table offers alter column ean set not null", Fault::Binds),
        (
            "alter table offers add constraint c check (stock > 0) not valid",
            Fault::Binds,
        ),
        (
            "create unique index concurrently offers_ean_key on offers (ean)",
            Fault::Binds,
        ),
        ("create index offers_ean_idx on offers (ean)", Fault::Locks),
    ] {
        assert_eq!(faults(&bounded(sql)), [fault], "{sql}");
    }
    assert_eq!(faults("alter table offers add column note text"), [Fault::Queues]);
}
