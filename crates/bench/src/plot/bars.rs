//! Horizontal bars, each of one part or of several.

use super::canvas::{Canvas, Held, ROW, colour, figure, step, width_of};

/// Where the bars end at the right.
const RIGHT: f64 = 820.0;
/// Room behind the bars for their figures.
const FIGURES: f64 = 124.0;
/// The top of the first bar.
const TOP: f64 = 34.0;

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// What it is of.
    pub(crate) name: String,
    /// What it is made of, in the order of the parts' names.
    pub(crate) parts: Vec<Part>,
    /// A mark on the scale that is to be reached.
    pub(crate) goal: Option<f64>,
    /// What is written behind it.
    pub(crate) text: String,
}

/// A part of a bar, with the spread of what was found, where it is to be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// How long.
    pub(crate) value: f64,
    /// From the smallest to the largest.
    pub(crate) spread: Option<(f64, f64)>,
}

/// Draws bars under a title; the names of the parts make the legend, where there are several.
pub(crate) fn bars(title: &str, parts: &[&str], all: &[Bar]) -> String {
    let mut canvas = Canvas::default();
    let left = all.iter().map(|bar| width_of(&bar.name)).fold(120.0, f64::max) + 12.0;
    let reach = |bar: &Bar| {
        let sum: f64 = bar.parts.iter().map(|part| part.value).sum();
        let spread = bar
            .parts
            .iter()
            .filter_map(|part| part.spread.map(|(_, most)| most));
        spread.chain(bar.goal).fold(sum, f64::max)
    };
    let most = all.iter().map(reach).fold(0.0, f64::max).max(1e-9);
    let scale = (RIGHT - FIGURES - left) / most;
    let mut y = TOP;
    if parts.len() > 1 {
        let names: Vec<_> = parts.iter().map(|name| (*name).to_owned()).collect();
        y = canvas.legend(left, y, RIGHT, &names) + ROW;
    }
    canvas.words(0.0, 16.0, Held::Start, title);
    let (top, each) = (y, step(most, 6.0));
    let rows = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let bottom = top + ROW * f64::from(rows);
    let mut tick = 0.0;
    while tick <= most * 1.001 {
        let x = left + tick * scale;
        canvas.rule((x, top), (x, bottom), tick > 0.0);
        canvas.words(x, bottom + 14.0, Held::Middle, &figure(tick));
        tick += each;
    }
    for bar in all {
        one(&mut canvas, bar, left, y, scale);
        y += ROW;
    }
    canvas.finish(RIGHT, y + 22.0, title)
}

fn one(canvas: &mut Canvas, bar: &Bar, left: f64, y: f64, scale: f64) {
    let (top, height, middle) = (y + 4.0, ROW - 8.0, y + ROW / 2.0);
    canvas.words(left - 8.0, middle + 4.0, Held::End, &bar.name);
    let mut x = left;
    let mut end = left;
    for (n, part) in bar.parts.iter().enumerate() {
        canvas.rectangle(x, top, part.value * scale, height, colour(n));
        x += part.value * scale;
        end = end.max(x);
        if let Some((least, most)) = part.spread {
            let (from, to) = (left + least * scale, left + most * scale);
            canvas.rule((from, middle), (to, middle), false);
            end = end.max(to);
        }
    }
    if let Some(goal) = bar.goal {
        let at = left + goal * scale;
        canvas.polyline(&[(at, top - 3.0), (at, top + height + 3.0)], colour(4), false);
        end = end.max(at);
    }
    canvas.words(end + 6.0, middle + 4.0, Held::Start, &bar.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar = |name: &str, values: &[f64]| Bar {
            name: name.to_owned(),
            parts: values
                .iter()
                .map(|value| Part {
                    value: *value,
                    spread: None,
                })
                .collect(),
            goal: Some(4.0),
            text: "t".to_owned(),
        };
        let svg = bars(
            "A < B",
            &["x", "y"],
            &[bar("one", &[1.0, 2.0]), bar("two", &[2.0, 2.0])],
        );
        let widths: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains("height=\"14.0\""))
            .map(|line| {
                let (_, rest) = line.split_once("width=\"").unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            })
            .collect();
        assert_eq!(widths.len(), 4);
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(
            document
                .root_element()
                .children()
                .find(|node| node.has_tag_name("title"))
                .unwrap()
                .text(),
            Some("A < B")
        );
        assert_eq!(
            svg,
            bars(
                "A < B",
                &["x", "y"],
                &[bar("one", &[1.0, 2.0]), bar("two", &[2.0, 2.0])]
            )
        );
    }
}
