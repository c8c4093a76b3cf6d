//! Bars: what the product promises about its speed, as ratios of one run.

use std::fmt::Write as _;

use crate::figures::{Spread, ratio_spread, whole};

/// Something found, with what was promised and what is aimed at.
pub(crate) struct Bar {
    what: &'static str,
    found: String,
    median: f64,
    bar: Option<Mark>,
    aim: Option<Mark>,
}

/// A figure that is to be reached.
pub(crate) struct Mark {
    text: String,
    reached: bool,
}

impl Mark {
    /// What is to be reached.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is.
    pub(crate) const fn reached(&self) -> bool {
        self.reached
    }
}

/// Writes the table of bars.
pub(crate) fn write(bars: Vec<Bar>, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "| | found | bar | | aim | |\n|---|--:|--:|---|--:|---|")?;
    for bar in bars {
        let (promised, holds) = cells(bar.bar, ["holds", "**missed**"]);
        let (aimed, reached) = cells(bar.aim, ["reached", "not reached"]);
        writeln!(
            text,
            "| {} | {} | {promised} | {holds} | {aimed} | {reached} |",
            bar.what, bar.found
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn cells(mark: Option<Mark>, words: [&'static str; 2]) -> (String, &'static str) {
    let [yes, no] = words;
    mark.map_or_else(Default::default, |mark| {
        (mark.text, if mark.reached { yes } else { no })
    })
}

/// A ratio, shown with its spread.
pub(crate) fn ratio(what: &'static str, found: Spread) -> Bar {
    Bar::new(what, ratio_spread(found), found)
}

/// A number, shown by its median.
pub(crate) fn number(what: &'static str, found: Spread) -> Bar {
    Bar::new(what, whole(found.median), found)
}

/// A small number, shown with its decimals.
pub(crate) fn decimal(what: &'static str, found: Spread) -> Bar {
    Bar::new(what, format!("{:.2}", found.median), found)
}

impl Bar {
    fn new(what: &'static str, text: String, found: Spread) -> Self {
        Self {
            what,
            found: text,
            median: found.median,
            bar: None,
            aim: None,
        }
    }

    /// With what is promised.
    pub(crate) fn bar(self, test: fn(f64, f64) -> Mark, limit: f64) -> Self {
        let bar = Some(test(self.median, limit));
        Self { bar, ..self }
    }

    /// With what is aimed at.
    pub(crate) fn aim(self, test: fn(f64, f64) -> Mark, limit: f64) -> Self {
        let aim = Some(test(self.median, limit));
        Self { aim, ..self }
    }
}

/// Reached from the limit on upwards.
pub(crate) fn at_least(found: f64, limit: f64) -> Mark {
    Mark {
        text: format!("≥ {}", short(limit)),
        reached: found >= limit,
    }
}

/// Reached up to the limit.
pub(crate) fn at_most(found: f64, limit: f64) -> Mark {
    Mark {
        text: format!("≤ {}", short(limit)),
        reached: found <= limit,
    }
}

fn short(limit: f64) -> String {
    if limit < 10.0 {
        limit.to_string()
    } else {
        whole(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_judged() {
        let found = Spread::of([0.4, 0.6, 0.9]);
        let bar = ratio("x", found).bar(at_least, 0.5).aim(at_least, 0.75);
        assert!(bar.bar.is_some_and(|bar| bar.reached && bar.text == "≥ 0.5"));
        assert!(bar.aim.is_some_and(|aim| !aim.reached));
        let bar = number("x", Spread::of([1_001.0])).bar(at_most, 1_000.0);
        assert_eq!(cells(bar.bar, ["yes", "no"]), ("≤ 1 000".to_owned(), "no"));
        assert_eq!(cells(None, ["yes", "no"]), (String::new(), ""));
    }
}
