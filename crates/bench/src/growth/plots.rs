//! Growth, drawn.

use super::Findings;
use super::subjects::{OFFER, PAGE, PATCH, ROW};
use crate::figures::{real, whole};
use crate::plot::{Axis, Line, Plot, lines};

/// Throughput over the number of offers, of few sellers.
pub(crate) fn all(findings: &Findings) -> anyhow::Result<Vec<Plot>> {
    let few = findings.sizes.split_last().map_or(&[][..], |(_, few)| few);
    let mut all = Vec::new();
    for (key, name) in [
        (ROW, "pgbench, one row"),
        (OFFER, "one offer"),
        (PAGE, "page of 50"),
        (PATCH, "keyed PATCH"),
    ] {
        let mut points = Vec::new();
        for (place, size) in (0_u32..).zip(few) {
            points.push((f64::from(place), size.subject(key)?.rate().median));
        }
        all.push(Line {
            name: name.to_owned(),
            points,
        });
    }
    let axis = Axis {
        name: "offers".to_owned(),
        ticks: few
            .iter()
            .map(|size| whole(real(size.catalogue.offers)))
            .collect(),
    };
    let title = "Requests a second as the catalogue grows";
    Ok(vec![Plot {
        name: "growth",
        says: format!("{title}: the tables above, drawn"),
        svg: lines(title, &axis, &all),
    }])
}
