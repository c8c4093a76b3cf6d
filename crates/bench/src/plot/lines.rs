//! Lines over a scale.

use super::canvas::{Canvas, Held, ROW, colour, figure, step};

/// The picture's size, and where its field lies.
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 56.0;

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What it is of.
    pub(crate) name: String,
    /// Its points, each an index into the axis's ticks (or between two of them) and a value.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether it is drawn broken, with the colour of the line before it.
    pub(crate) dashed: bool,
}

/// What stands below.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it counts.
    pub(crate) name: String,
    /// Its ticks, evenly spaced.
    pub(crate) ticks: Vec<String>,
}

/// Draws lines under a title. The values begin at zero.
pub(crate) fn lines(title: &str, axis: &Axis, all: &[Line]) -> String {
    let mut canvas = Canvas::default();
    let values = all
        .iter()
        .flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let most = values.fold(0.0, f64::max).max(1e-9);
    let (right, bottom) = (WIDTH - 20.0, HEIGHT - 44.0);
    let last = u32::try_from(axis.ticks.len().saturating_sub(1))
        .unwrap_or(1)
        .max(1);
    let x = |place: f64| LEFT + place * (right - LEFT) / f64::from(last);
    let y = |value: f64| bottom - value / most * (bottom - TOP);
    canvas.words(0.0, 16.0, Held::Start, title);
    let each = step(most, 6.0);
    let mut tick = 0.0;
    while tick <= most * 1.001 {
        canvas.rule((LEFT, y(tick)), (right, y(tick)), tick > 0.0);
        canvas.words(LEFT - 6.0, y(tick) + 4.0, Held::End, &figure(tick));
        tick += each;
    }
    for (place, name) in (0_u32..).zip(&axis.ticks) {
        canvas.words(x(f64::from(place)), bottom + 16.0, Held::Middle, name);
    }
    canvas.words(LEFT.midpoint(right), bottom + 34.0, Held::Middle, &axis.name);
    let mut names: Vec<String> = Vec::new();
    for line in all {
        if !line.dashed {
            names.push(line.name.clone());
        }
        let n = names.len().saturating_sub(1);
        let points: Vec<_> = line
            .points
            .iter()
            .map(|(place, value)| (x(*place), y(*value)))
            .collect();
        canvas.polyline(&points, colour(n), points.len() < 12, line.dashed);
    }
    canvas.legend(LEFT, 16.0 + ROW, &names);
    canvas.finish(WIDTH, HEIGHT, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_values_are_higher_and_a_broken_line_has_its_neighbours_colour() {
        let line = |values: [f64; 2], dashed| Line {
            name: "l".to_owned(),
            points: vec![(0.0, values[0]), (1.0, values[1])],
            dashed,
        };
        let axis = Axis {
            name: "n".to_owned(),
            ticks: vec!["a".to_owned(), "b".to_owned()],
        };
        let svg = lines("T", &axis, &[line([10.0, 5.0], false), line([2.0, 1.0], true)]);
        roxmltree::Document::parse(&svg).unwrap();
        let strokes = svg
            .matches(&format!("stroke=\"{}\" stroke-width", colour(0)))
            .count();
        assert_eq!(strokes, 2, "{svg}");
        // The largest value is at the field's top, half of it in the middle.
        assert!(svg.contains("M60.0 56.0L800.0 166.0"), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
    }
}
