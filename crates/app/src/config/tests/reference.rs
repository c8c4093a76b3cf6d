//! Tests of the configuration reference: it is complete and current, and its ranges and defaults are right.

use super::*;
use crate::config::reference::{markdown, sections};

#[test]
fn the_page_is_current() {
    let page = include_str!("../../../../../docs/operations/configuration.md");
    assert!(
        page.trim_end() == markdown().unwrap().trim_end(),
        "run `seller-api config reference > docs/operations/configuration.md`"
    );
}

#[test]
fn every_key_is_described() {
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
fn the_reference_has_every_key_with_its_default() {
    let displayed = load("").unwrap().to_string();
    let mut lines = displayed.lines().filter(|line| !line.is_empty()).count();
    for section in sections() {
        let head = format!("[{}]\n", section.name);
        let (_, values) = displayed.split_once(&head).unwrap();
        let values = values.split("\n[").next().unwrap();
        for key in &section.keys {
            let name = key.name.rsplit('.').next().unwrap();
            let line = match &key.default {
                Some(default) => format!("{name} = {default}"),
                None => format!("# {name} is not set"),
            };
            assert!(
                values.lines().any(|other| other == line),
                "{line} is not in {values}"
            );
        }
        lines -= 1 + section.keys.len();
    }
    assert_eq!(lines, 0, "the reference lacks keys: {displayed}");
}

/// The closest values outside a range of durations or numbers.
fn outside(least: &str, most: &str) -> Vec<String> {
    if let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>()) {
        let below = least.checked_sub(1).map(|below| below.to_string());
        return below.into_iter().chain([(most + 1).to_string()]).collect();
    }
    let parse = |bound: &str| Period::try_from(bound.to_owned()).unwrap().0;
    let little = Duration::from_nanos(1);
    let below = parse(least).checked_sub(little);
    let values = below.into_iter().chain([parse(most) + little]);
    values.map(|value| Period(value).to_string()).collect()
}

#[test]
fn ranges_are_enforced() {
    let ranged = keys().filter_map(|key| Some((key.range.as_deref()?, &key.name)));
    let mut tested = 0;
    for (range, name) in ranged {
        let bounds = range.strip_prefix("from ");
        let Some((least, most)) = bounds.and_then(|bounds| bounds.split_once(" to ")) else {
            continue;
        };
        tested += 1;
        for bound in [least, most] {
            let loaded = load(&format!("{name}={bound}"));
            assert!(loaded.is_ok(), "{name}={bound}: {}", loaded.unwrap_err());
        }
        for value in outside(least, most) {
            let message = refusal(&format!("{name}={value}"));
            assert!(
                message.contains(&format!("`{name}` ")),
                "{name}={value}: {message}"
            );
        }
    }
    assert!(tested > 20, "{tested}");
}
