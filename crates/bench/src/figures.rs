//! Figures of repeated measurements: median and spread, and how they are written.

use std::time::Duration;

/// The middle of several values (of an even number, the mean of the two middle ones) with the smallest and largest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// The smallest.
    pub(crate) min: f64,
    /// The middle.
    pub(crate) median: f64,
    /// The largest.
    pub(crate) max: f64,
    /// How many values there were.
    pub(crate) readings: usize,
}

impl Spread {
    /// The spread of `values`; all zero where there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = |offset: usize| {
            let place = (sorted.len().saturating_sub(offset)) / 2;
            sorted.get(place).copied().unwrap_or_default()
        };
        Self {
            min: sorted.first().copied().unwrap_or_default(),
            median: f64::midpoint(middle(0), middle(1)),
            max: sorted.last().copied().unwrap_or_default(),
            readings: sorted.len(),
        }
    }
}

/// `count` as a number to calculate with.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, where a double is still exact"
)]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// A whole number with its thousands set apart: `52 310`.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A spread of whole numbers: `52 310 (50 020–53 400)`.
///
/// Of one reading there is no spread to tell: `52 310`.
pub(crate) fn whole_spread(spread: Spread) -> String {
    if spread.readings == 1 {
        return whole(spread.median);
    }
    format!(
        "{} ({}–{})",
        whole(spread.median),
        whole(spread.min),
        whole(spread.max)
    )
}

/// A spread with two decimals: `0.71 (0.69–0.74)`.
pub(crate) fn ratio_spread(spread: Spread) -> String {
    if spread.readings == 1 {
        return format!("{:.2}", spread.median);
    }
    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.min, spread.max)
}

/// How many rounds: `1 round`, `3 rounds`.
pub(crate) fn rounds(count: u64) -> String {
    match count {
        1 => "1 round".to_owned(),
        _ => format!("{count} rounds"),
    }
}

/// A duration in milliseconds with two decimals.
pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(
            Spread::of([3.0, 1.0, 2.0]),
            Spread {
                min: 1.0,
                median: 2.0,
                max: 3.0,
                readings: 3
            }
        );
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 3.0]),
            Spread {
                min: 1.0,
                median: 2.5,
                max: 4.0,
                readings: 4
            }
        );
        assert_eq!(
            Spread::of([7.0]),
            Spread {
                min: 7.0,
                median: 7.0,
                max: 7.0,
                readings: 1
            }
        );
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn one_round_is_no_several() {
        assert_eq!([0, 1, 3].map(rounds), ["0 rounds", "1 round", "3 rounds"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(whole(0.4), "0");
        assert_eq!(whole(999.0), "999");
        assert_eq!(whole(1_000.0), "1 000");
        assert_eq!(whole(1_234_567.0), "1 234 567");
        assert_eq!(whole(-1_000.0), "-1 000");
        assert_eq!(whole(-100.0), "-100");
    }
}
