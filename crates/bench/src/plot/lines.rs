//! Lines over a scale, in one field or in two that share it.

use super::canvas::{Canvas, Held, ROW};
use super::field::{Field, Scale};

/// The picture's width, and where its fields lie.
const WIDTH: f64 = 820.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 20.0;
/// Room below a field for the words of its axis.
const BELOW: f64 = 44.0;

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What it is of.
    pub(crate) name: String,
    /// Its points, each an index into the axis's ticks (or between two of them) and a value.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What stands below.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it counts.
    pub(crate) name: String,
    /// Its ticks, evenly spaced.
    pub(crate) ticks: Vec<String>,
}

/// Lines that have a field of their own.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// What they have in common.
    pub(crate) name: String,
    /// The lines, of the same kinds in each panel.
    pub(crate) lines: Vec<Line>,
}

/// Draws lines under a title. The values begin at zero.
pub(crate) fn lines(title: &str, axis: &Axis, all: &[Line]) -> String {
    let mut canvas = Canvas::default();
    let top = head(&mut canvas, title, all);
    let field = Field {
        left: LEFT,
        right: RIGHT,
        top,
        bottom: top + 220.0,
    };
    field.draw(&mut canvas, &Scale::even(values(all)), axis, all);
    canvas.finish(WIDTH, field.bottom + BELOW, title)
}

/// Draws two panels beside each other under a title, over one scale by tens, on which small values and large ones can be told apart.
pub(crate) fn panels(title: &str, axis: &Axis, both: &[Panel; 2]) -> String {
    let mut canvas = Canvas::default();
    let [first, second] = both;
    let top = head(&mut canvas, title, &first.lines) + ROW;
    let scale = Scale::tens(values(&first.lines).chain(values(&second.lines)));
    let (bottom, middle) = (top + 300.0, LEFT.midpoint(RIGHT));
    for (panel, left, right) in [
        (first, LEFT, middle - LEFT / 2.0),
        (second, middle + LEFT / 2.0, RIGHT),
    ] {
        let field = Field {
            left,
            right,
            top,
            bottom,
        };
        canvas.words(left.midpoint(right), top - 12.0, Held::Middle, &panel.name);
        field.draw(&mut canvas, &scale, axis, &panel.lines);
    }
    canvas.finish(WIDTH, bottom + BELOW, title)
}

/// Writes the title and what the colours mean; gives where there is room below.
fn head(canvas: &mut Canvas, title: &str, all: &[Line]) -> f64 {
    canvas.words(0.0, 16.0, Held::Start, title);
    let names: Vec<_> = all.iter().map(|line| line.name.clone()).collect();
    canvas.legend(LEFT, 16.0 + ROW, RIGHT, &names) + 18.0
}

fn values(all: &[Line]) -> impl Iterator<Item = f64> {
    all.iter()
        .flat_map(|line| line.points.iter().map(|(_, value)| *value))
}

#[cfg(test)]
mod tests {
    use super::super::canvas::colour;
    use super::*;

    fn line(values: [f64; 2]) -> Line {
        Line {
            name: "l".to_owned(),
            points: vec![(0.0, values[0]), (1.0, values[1])],
        }
    }

    fn axis() -> Axis {
        Axis {
            name: "n".to_owned(),
            ticks: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    #[test]
    fn higher_values_are_higher() {
        let svg = lines("T", &axis(), &[line([10.0, 5.0]), line([2.0, 1.0])]);
        roxmltree::Document::parse(&svg).unwrap();
        // The largest value is at the field's top, half of it in the middle.
        assert!(svg.contains("M60.0 56.0L800.0 166.0"), "{svg}");
        for n in 0..2 {
            let stroke = format!("stroke=\"{}\" stroke-width", colour(n));
            assert_eq!(svg.matches(&stroke).count(), 1, "{svg}");
        }
    }

    #[test]
    fn panels_share_the_scale_and_the_colours() {
        let panel = |name: &str, values| Panel {
            name: name.to_owned(),
            lines: vec![line(values), line([1.0, 1.0])],
        };
        let svg = panels(
            "T",
            &axis(),
            &[panel("p", [1.0, 10.0]), panel("q", [10.0, 100.0])],
        );
        roxmltree::Document::parse(&svg).unwrap();
        // Half way up at the left is as high as at the right.
        assert!(svg.contains("M60.0 378.0L400.0 228.0"), "{svg}");
        assert!(svg.contains("M460.0 228.0L800.0 78.0"), "{svg}");
        let stroke = format!("stroke=\"{}\" stroke-width", colour(0));
        assert_eq!(svg.matches(&stroke).count(), 2, "{svg}");
        assert!(svg.contains(">p<") && svg.contains(">q<"), "{svg}");
    }
}
