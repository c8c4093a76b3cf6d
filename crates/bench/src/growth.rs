//! What a request costs as data grows: the same subjects over catalogues of several sizes, and over many more sellers.

mod fill;
mod goals;
mod plots;
mod report;
mod scripts;
mod sellers;
mod stand;
mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::noise::Patience;
use crate::options::GrowthOptions;
use crate::progress::Progress;
use crate::publish::Report;
use crate::stand::Ground;
use crate::{publish, rounds};
pub(crate) use goals::all as goals;
pub(crate) use report::Findings;
use report::Size;
use stand::Grown;

/// The report's section in the document.
pub(crate) const SECTION: &str = "growth";
/// The sizes of the catalogues, in offers.
const OFFERS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// The catalogue of many sellers: so many offers, at most.
const SPREAD_OFFERS: u64 = 1_000_000;

/// Runs it all and writes the report.
pub(crate) async fn run(options: &GrowthOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    Ok(Report::with(report::render(findings)?, plots::all(findings)?))
}

/// The catalogues, each larger than the one before it; the last one has many sellers.
fn catalogues(options: &GrowthOptions) -> Vec<Catalogue> {
    let most = options.offers_max.max(1);
    let sizes = OFFERS.into_iter().filter(|offers| *offers <= most);
    let mut all: Vec<_> = sizes
        .map(|offers| Catalogue::new(offers, options.stand.sellers))
        .collect();
    if all.is_empty() {
        all.push(Catalogue::new(most, options.stand.sellers));
    }
    all.push(Catalogue::new(SPREAD_OFFERS.min(most), options.sellers_max));
    all
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &GrowthOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let mut stands = Vec::new();
    for catalogue in catalogues(options) {
        stands.push(Grown::raise(ground, catalogue, progress).await?);
    }
    let subjects = stands
        .iter()
        .flat_map(|stand| subjects::of(&options.stand, stand))
        .collect();
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(
        &ground.cluster,
        subjects,
        options.report.rounds,
        &mut patience,
        progress,
    )
    .await?;
    let mut rest = measured.into_iter();
    let mut sizes = Vec::new();
    for stand in stands {
        sizes.push(Size {
            catalogue: stand.catalogue,
            bytes: stand.bytes,
            filled_in: stand.filled_in,
            measured: rest.by_ref().take(subjects::EACH).collect(),
        });
        stand.server.stop().await?;
        ground.clear(&stand.database).await?;
    }
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        sizes,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        options: GrowthOptions,
    }

    #[test]
    fn catalogues_go_up_to_what_is_wanted() {
        let of = |arguments: &[&str]| {
            let arguments = Arguments::parse_from([&["bench"], arguments].concat());
            let all = catalogues(&arguments.options).into_iter();
            all.map(|catalogue| (catalogue.offers, catalogue.sellers))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[]).len(), 5);
        assert_eq!(of(&[]).last(), Some(&(1_000_000, 100_000)));
        assert_eq!(
            of(&["--offers-max", "100000", "--sellers-max", "2000"]),
            [(10_000, 1_000), (100_000, 1_000), (100_000, 2_000)]
        );
    }
}
