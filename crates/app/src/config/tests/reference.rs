//! Tests of the configuration reference: it is complete and current, and its ranges and defaults are right.

use std::collections::BTreeSet;

use figment::value::Value;

use super::*;
use crate::config::reference::{keys, markdown, sections};

fn key_names(path: &str, value: &Value, names: &mut BTreeSet<String>) {
    match value.as_dict() {
        Some(values) => {
            for (name, value) in values {
                let dot = if path.is_empty() { "" } else { "." };
                key_names(&format!("{path}{dot}{name}"), value, names);
            }
        }
        None => {
            names.insert(path.to_owned());
        }
    }
}

#[test]
fn the_page_is_current() {
    let page = include_str!("../../../../../docs/operations/configuration.md");
    assert!(
        page.trim_end() == markdown().unwrap().trim_end(),
        "run `seller-api config reference > docs/operations/configuration.md`"
    );
}

#[test]
fn every_key_is_told_with_all_that_there_is_to_it() {
    let mut read = BTreeSet::new();
    key_names("", &Value::serialize(Config::default()).unwrap(), &mut read);
    let told = keys().map(|key| key.name).collect::<BTreeSet<_>>();
    assert_eq!(told, read);
    for key in keys() {
        assert!(key.meaning.ends_with('.'), "{key:?}");
        assert!(!key.meaning.contains('|'), "{key:?}");
        assert!(!key.read_by.is_empty() && !key.kind.is_empty(), "{key:?}");
        assert!(
            key.kind != "number" || key.range.is_some() || key.name.ends_with("daily_limit"),
            "{key:?}"
        );
        assert!(key.kind != "duration" || key.range.is_some(), "{key:?}");
    }
    for section in sections() {
        assert!(section.about.ends_with('.'), "{section:?}");
    }
}

#[test]
fn defaults_are_those_that_hold() {
    let printed = load(&[]).unwrap().to_string();
    for key in keys() {
        let name = key.name.rsplit('.').next().unwrap();
        let line = match &key.default {
            Some(default) => format!("{name} = {default}\n"),
            None => format!("# {name} is not set\n"),
        };
        let section = key.name.strip_suffix(&format!(".{name}")).unwrap();
        let (_, of_section) = printed.split_once(&format!("[{section}]\n")).unwrap();
        let of_section = of_section.split("\n[").next().unwrap();
        assert!(
            format!("{of_section}\n").contains(&line),
            "{line} is not in {of_section}"
        );
    }
}

/// A value just beyond a bound: a duration or number, greater or smaller.
fn beyond(bound: &str, greater: bool) -> Option<String> {
    if let Ok(number) = bound.parse::<u64>() {
        let beyond = if greater {
            Some(number + 1)
        } else {
            number.checked_sub(1)
        };
        return beyond.map(|number| number.to_string());
    }
    let Period(duration) = Period::try_from(bound.to_owned()).unwrap();
    let little = std::time::Duration::from_nanos(1);
    let beyond = if greater {
        duration.checked_add(little)
    } else {
        duration.checked_sub(little)
    };
    beyond.map(|beyond| Period(beyond).to_string())
}

#[test]
fn ranges_are_those_that_are_kept() {
    let ranged = keys().filter_map(|key| Some((key.range.clone()?, key)));
    let mut tried = 0;
    for (range, key) in ranged {
        let Some((least, most)) = range
            .strip_prefix("from ")
            .and_then(|range| range.split_once(" to "))
        else {
            continue;
        };
        tried += 1;
        let variable = key.variable();
        for bound in [least, most] {
            let loaded = load(&[(&variable, bound)]);
            assert!(loaded.is_ok(), "{variable}={bound}: {}", loaded.unwrap_err());
        }
        for outside in [beyond(least, false), beyond(most, true)].into_iter().flatten() {
            let message = refusal(&[(&variable, &outside)]);
            assert!(
                message.contains(&format!("`{}` ", key.name)),
                "{variable}={outside}: {message}"
            );
        }
    }
    assert!(tried > 20, "{tried}");
}
