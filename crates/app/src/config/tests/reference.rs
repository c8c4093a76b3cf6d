//! Tests of the configuration reference: it is complete and current, and its ranges and defaults are right.

use std::ops::RangeInclusive;

use super::*;
use crate::assert_current_page;
use crate::config::reference::{Measure, markdown, sections};

#[test]
fn the_page_is_current() {
    assert_current_page("configuration.md", &markdown().unwrap());
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
    let loaded = load("").unwrap();
    let displayed = loaded.to_string();
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
    }
    let all = values(&serde_json::to_value(&loaded.config).unwrap());
    assert_eq!(keys().count(), all, "the reference lacks keys: {displayed}");
}

/// How many values there are in a section and its inner ones.
fn values(of: &serde_json::Value) -> usize {
    of.as_object().map_or(1, |inner| inner.values().map(values).sum())
}

/// The closest values outside the bounds.
fn outside(bounds: &RangeInclusive<Measure>) -> Vec<String> {
    match (*bounds.start(), *bounds.end()) {
        (Measure::Duration(least), Measure::Duration(most)) => {
            let little = Duration::from_nanos(1);
            let below = least.0.checked_sub(little);
            let values = below.into_iter().chain([most.0 + little]);
            values.map(|value| Period(value).to_string()).collect()
        }
        (Measure::Number(least), Measure::Number(most)) => {
            [least - 1.0, most + 1.0].map(|value| value.to_string()).into()
        }
        mixed => panic!("{mixed:?}"),
    }
}

#[test]
fn ranges_are_enforced() {
    let mut tested = 0;
    for key in keys() {
        let Some(bounds) = &key.bounds else { continue };
        let (name, length) = (&key.name, key.default.as_ref().filter(|_| key.is_list));
        // A list has as many items as its default.
        let length = length.map_or(1, |list| list.matches(',').count() + 1);
        let setting = |value: &str| format!("{name}={}", vec![value; length].join(","));
        tested += 1;
        for bound in [bounds.start(), bounds.end()] {
            let loaded = load(&setting(&bound.to_string()));
            assert!(loaded.is_ok(), "{name}={bound}: {}", loaded.unwrap_err());
        }
        for value in outside(bounds) {
            let message = refusal(&setting(&value));
            let rule = format!("`{name}` must be {}", key.range.as_ref().unwrap());
            assert!(message.contains(&rule), "{name}={value}: {message}");
        }
    }
    assert!(tested > 20, "{tested}");
}
