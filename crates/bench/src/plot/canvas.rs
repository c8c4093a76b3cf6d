//! Shapes and words of a picture.

use std::fmt::{Display, Write as _};

/// The ink of words and axes.
const INK: &str = "#7a808a";
/// The lines behind the figures.
const FAINT: &str = "#7a808a55";
/// What is told apart by colour, in this order.
const COLOURS: [&str; 7] = [
    "#3b82c4", "#d97a32", "#3f9a5f", "#a866b8", "#c4524f", "#8a8f3a", "#2ab0b5",
];
/// The height of a line of words.
pub(super) const ROW: f64 = 22.0;

/// Where words are held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// At their beginning.
    Start,
    /// In their middle.
    Middle,
    /// At their end.
    End,
}

/// A picture that is being drawn.
#[derive(Debug, Default)]
pub(super) struct Canvas(String);

/// The colour of the n-th of what is told apart.
pub(super) fn colour(n: usize) -> &'static str {
    COLOURS.iter().cycle().nth(n).copied().unwrap_or(INK)
}

impl Canvas {
    /// A filled box.
    pub(super) fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#
        ));
    }

    /// A straight line of the axes' ink.
    pub(super) fn rule(&mut self, from: (f64, f64), to: (f64, f64), faint: bool) {
        let ink = if faint { FAINT } else { INK };
        self.add(format_args!(
            r#"<path d="M{:.1} {:.1}L{:.1} {:.1}" stroke="{ink}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points, with a mark at each where `marked`.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], stroke: &str, marked: bool) {
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        self.add(format_args!(
            r#"<path d="M{}" stroke="{stroke}" stroke-width="2" fill="none"/>"#,
            path.join("L")
        ));
        for (x, y) in points.iter().filter(|_| marked) {
            self.add(format_args!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{stroke}"/>"#
            ));
        }
    }

    /// Words on a line.
    pub(super) fn words(&mut self, x: f64, y: f64, held: Held, words: &str) {
        let anchor = match held {
            Held::Start => "start",
            Held::Middle => "middle",
            Held::End => "end",
        };
        let words = words
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#
        ));
    }

    /// What the colours mean, from `left` on in as many rows as end before `right`; gives where the last one is.
    pub(super) fn legend(&mut self, left: f64, top: f64, right: f64, names: &[String]) -> f64 {
        let (mut x, mut y) = (left, top);
        for (n, name) in names.iter().enumerate() {
            let width = 15.0 + width_of(name);
            if x > left && x + width > right {
                (x, y) = (left, y + ROW);
            }
            self.rectangle(x, y - 9.0, 10.0, 10.0, colour(n));
            self.words(x + 15.0, y, Held::Start, name);
            x += width + 19.0;
        }
        y
    }

    /// The whole picture.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let title = title
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{INK}\" role=\"img\">\n\
             <title>{title}</title>\n{}</svg>\n",
            self.0
        )
    }

    fn add(&mut self, shape: impl Display) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{shape}");
    }
}

/// About how wide words are.
pub(super) fn width_of(words: &str) -> f64 {
    let characters = u32::try_from(words.chars().count()).unwrap_or(u32::MAX);
    f64::from(characters) * 6.4
}

/// A round step that divides `range` into at most `most` parts.
pub(super) fn step(range: f64, most: f64) -> f64 {
    let rough = range.max(f64::MIN_POSITIVE) / most;
    let power = 10_f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fitting = factors.into_iter().find(|factor| factor * power >= rough * 0.999);
    fitting.unwrap_or(10.0) * power
}

/// A figure at an axis.
pub(super) fn figure(value: f64) -> String {
    if value >= 1e6 {
        format!("{} M", trimmed(value / 1e6))
    } else if value >= 1e3 {
        format!("{} k", trimmed(value / 1e3))
    } else {
        trimmed(value)
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_goes_on_in_the_next_row() {
        let names = ["one", "two", "three"].map(str::to_owned);
        let mut canvas = Canvas::default();
        assert!((canvas.legend(0.0, 10.0, 820.0, &names) - 10.0).abs() < 1e-9);
        // Two of them have room in 110.
        let mut canvas = Canvas::default();
        assert!((canvas.legend(0.0, 10.0, 110.0, &names) - 10.0 - ROW).abs() < 1e-9);
        let svg = canvas.finish(110.0, 50.0, "T");
        assert_eq!(svg.matches(r#"<rect x="0.0""#).count(), 2, "{svg}");
        let colours: std::collections::BTreeSet<_> = (0..7).map(colour).collect();
        assert_eq!(colours.len(), 7);
    }

    #[test]
    fn steps_are_round() {
        assert!((step(1.0, 5.0) - 0.2).abs() < 1e-9);
        assert!((step(37_000.0, 8.0) - 5_000.0).abs() < 1e-6);
        assert_eq!(
            [figure(0.25), figure(10_000.0), figure(1.5e6), figure(100.0)],
            ["0.25", "10 k", "1.5 M", "100"]
        );
    }
}
