//! The field in which lines lie: its scale, its grid, and where a value is.

use super::canvas::{Canvas, Held, colour, figure, step};
use super::lines::{Axis, Line};

/// The least value on a scale by tens, and the power of ten that it is.
const LEAST: f64 = 0.01;
const LEAST_POWER: i32 = -2;

/// How values are placed from the bottom to the top.
#[derive(Clone, Debug)]
pub(super) enum Scale {
    /// Evenly, from zero.
    Even {
        /// The value at the top.
        most: f64,
    },
    /// Each ten times as far up as the one before, from the first of these round values to the last.
    Tens(Vec<f64>),
}

impl Scale {
    /// An even one on which all values have room.
    pub(super) fn even(values: impl Iterator<Item = f64>) -> Self {
        Self::Even {
            most: values.fold(0.0, f64::max).max(1e-9),
        }
    }

    /// One by tens on which all values have room; those below a hundredth lie at its bottom.
    pub(super) fn tens(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((f64::INFINITY, LEAST), |(least, most), value| {
            (least.min(value.max(LEAST)), most.max(value))
        });
        let mut round = Vec::new();
        for power in LEAST_POWER..=9 {
            for factor in [1.0, 2.0, 5.0] {
                let value = factor * 10.0_f64.powi(power);
                // The last one below all values is the first that is kept.
                if value <= least.min(most) * 1.001 {
                    round.clear();
                }
                let enough = round.len() > 1 && round.last().is_some_and(|last| *last >= most * 0.999);
                if !enough {
                    round.push(value);
                }
            }
        }
        Self::Tens(round)
    }

    /// How far up a value is, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self {
            Self::Even { most } => value / most,
            Self::Tens(round) => {
                let end = |value: Option<&f64>| value.copied().unwrap_or(LEAST).log10();
                let (least, most) = (end(round.first()), end(round.last()));
                ((value.max(LEAST).log10() - least) / (most - least)).clamp(0.0, 1.0)
            }
        }
    }

    /// The values that have a line of the grid.
    fn ticks(&self) -> Vec<f64> {
        match self {
            Self::Even { most } => {
                let each = step(*most, 6.0);
                let ticks = (0_u32..).map(|n| f64::from(n) * each);
                ticks.take_while(|tick| *tick <= most * 1.001).collect()
            }
            Self::Tens(round) => round.clone(),
        }
    }
}

/// A field in a picture.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Its left side.
    pub(super) left: f64,
    /// Its right side.
    pub(super) right: f64,
    /// Its top.
    pub(super) top: f64,
    /// Its bottom.
    pub(super) bottom: f64,
}

impl Field {
    /// Draws the grid with its words, and the lines in the order of the colours.
    pub(super) fn draw(&self, canvas: &mut Canvas, scale: &Scale, axis: &Axis, all: &[Line]) {
        let last = u32::try_from(axis.ticks.len().saturating_sub(1))
            .unwrap_or(1)
            .max(1);
        let x = |place: f64| self.left + place * (self.right - self.left) / f64::from(last);
        let y = |value: f64| self.bottom - scale.share(value) * (self.bottom - self.top);
        for (n, tick) in scale.ticks().into_iter().enumerate() {
            canvas.rule((self.left, y(tick)), (self.right, y(tick)), n > 0);
            canvas.words(self.left - 6.0, y(tick) + 4.0, Held::End, &figure(tick));
        }
        for (place, name) in (0_u32..).zip(&axis.ticks) {
            canvas.words(x(f64::from(place)), self.bottom + 16.0, Held::Middle, name);
        }
        canvas.words(
            self.left.midpoint(self.right),
            self.bottom + 34.0,
            Held::Middle,
            &axis.name,
        );
        for (n, line) in all.iter().enumerate() {
            let points = line.points.iter().map(|(place, value)| (x(*place), y(*value)));
            let points: Vec<_> = points.collect();
            canvas.polyline(&points, colour(n), points.len() < 12);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tens(values: &[f64]) -> Vec<f64> {
        let ticks = Scale::tens(values.iter().copied()).ticks();
        // Powers are not exact.
        ticks.into_iter().map(|tick| (tick * 1e3).round() / 1e3).collect()
    }

    #[test]
    fn a_scale_by_tens_ends_at_round_values_around_all() {
        assert_eq!(tens(&[0.3, 12.0]), [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(tens(&[0.2, 5.0]), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(tens(&[5.0, 5.0]), [5.0, 10.0]);
        assert_eq!(tens(&[0.0, 0.02]), [0.01, 0.02]);
        assert!(tens(&[]).len() > 1);
    }

    #[test]
    fn each_ten_times_is_as_far_up_as_the_other() {
        let scale = Scale::tens([1.0, 100.0].into_iter());
        let near = |value, share: f64| assert!((scale.share(value) - share).abs() < 1e-9, "{value}");
        near(1.0, 0.0);
        near(10.0, 0.5);
        near(100.0, 1.0);
        near(0.0, 0.0);
    }

    #[test]
    fn an_even_scale_begins_at_zero() {
        let scale = Scale::even([37.0].into_iter());
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0]);
        assert!((scale.share(18.5) - 0.5).abs() < 1e-9);
    }
}
