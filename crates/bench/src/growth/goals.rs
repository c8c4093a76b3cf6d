//! What was found of the goal of growth.

use super::Findings;
use super::subjects::{OFFER, ROW};
use crate::figures::{ratio_spread, real, whole};
use crate::goals::{Found, Goal};

/// The offers that the goal compares.
const COMPARED: [u64; 2] = [10_000, 10_000_000];

/// What was found: the largest catalogue of few sellers beside the smallest.
pub(crate) fn all(findings: &Findings) -> anyhow::Result<Vec<Found>> {
    let few = findings.sizes.split_last().map_or(&[][..], |(_, few)| few);
    let (Some(first), Some(last)) = (few.first(), few.last()) else {
        return Ok(Vec::new());
    };
    let row = format!(
        "pgbench's own row falls to {} of its rate.",
        ratio_spread(last.over(first, ROW)?)
    );
    let mut found = Found::of(Goal::Growth, last.over(first, OFFER)?).because(row);
    let sizes = [first.catalogue.offers, last.catalogue.offers];
    let [small, large] = sizes.map(|offers| whole(real(offers)));
    found.but = (sizes != COMPARED).then(|| format!("with {large} ÷ with {small}"));
    Ok(vec![found])
}
