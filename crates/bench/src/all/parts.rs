//! The parts of a run of everything, each as its own command would run it.

use crate::goals::Found;
use crate::options::{
    AllOptions, ArrivalsOptions, DeliveriesOptions, GrowthOptions, Part, ReadOptions, StorageOptions,
    TokensOptions, WriteOptions,
};
use crate::progress::Progress;
use crate::publish::Report;
use crate::stand::Ground;
use crate::{arrivals, deliveries, growth, read, storage, tokens, write};

/// The catalogue of the reading bench, at most.
const READ_OFFERS: u64 = 1_000_000;
/// The catalogue that is changed, at most.
const CHANGED_OFFERS: u64 = 100_000;
/// The catalogue that others are compared with.
const FEW_OFFERS: u64 = 10_000;
/// Orders, at most.
const ORDERS: u64 = 1_000_000;
/// Deliveries that wait while memory is read, at most.
const PENDING: u64 = 1_000_000;
/// Starts that are timed.
const STARTS: u64 = 10;
/// The share of a million that what is not offers is made smaller by, with the most offers that are allowed.
const WHOLE: u64 = 1_000_000;

/// Where a part is told.
pub(super) const fn section(part: Part) -> &'static str {
    match part {
        Part::Reads => read::SECTION,
        Part::Writes => write::SECTION,
        Part::Tokens => tokens::SECTION,
        Part::Webhooks => deliveries::SECTION,
        Part::Latency => arrivals::SECTION,
        Part::Growth => growth::SECTION,
        Part::Storage => storage::SECTION,
    }
}

/// Measures a part: what is told of it, and what it found of the goals.
pub(super) async fn measure(
    part: Part,
    ground: &Ground,
    options: &AllOptions,
) -> anyhow::Result<(Report, Vec<Found>)> {
    let progress = Progress::new();
    match part {
        Part::Reads => {
            let findings = read::measure(ground, &reads(options), progress).await?;
            Ok((read::publication(&findings)?, read::goals(&findings)?))
        }
        Part::Writes => {
            let findings = write::measure(ground, &writes(options), progress).await?;
            Ok((write::publication(&findings)?, write::goals(&findings)?))
        }
        Part::Tokens => {
            let options = TokensOptions {
                stand: options.stand.clone(),
                report: options.report.clone(),
            };
            let findings = tokens::measure(ground, &options, progress).await?;
            Ok((tokens::publication(&findings)?, tokens::goals(&findings)?))
        }
        Part::Webhooks => {
            let findings = deliveries::measure(ground, &webhooks(options), progress).await?;
            Ok((deliveries::publication(&findings)?, deliveries::goals(&findings)))
        }
        Part::Latency => {
            let options = ArrivalsOptions {
                offers: CHANGED_OFFERS.min(options.offers_max),
                orders: None,
                stand: options.stand.clone(),
                report: options.report.clone(),
            };
            let findings = arrivals::measure(ground, &options, progress).await?;
            Ok((arrivals::publication(&findings)?, arrivals::goals(&findings)))
        }
        Part::Growth => {
            let options = GrowthOptions {
                offers_max: options.offers_max,
                sellers_max: part_of(options, 100_000),
                stand: options.stand.clone(),
                report: options.report.clone(),
            };
            let findings = growth::measure(ground, &options, progress).await?;
            Ok((growth::publication(&findings)?, growth::goals(&findings)?))
        }
        Part::Storage => {
            let findings = storage::measure(ground, &stored(options), progress).await?;
            Ok((storage::publication(&findings)?, Vec::new()))
        }
    }
}

/// So many, or fewer where little is wanted of offers too.
fn part_of(options: &AllOptions, count: u64) -> u64 {
    count * options.offers_max.min(WHOLE) / WHOLE
}

fn reads(options: &AllOptions) -> ReadOptions {
    ReadOptions {
        offers: READ_OFFERS.min(options.offers_max),
        small_offers: FEW_OFFERS,
        stand: options.stand.clone(),
        kept_connections: options.kept_connections,
        starts: STARTS,
        report: options.report.clone(),
    }
}

fn writes(options: &AllOptions) -> WriteOptions {
    WriteOptions {
        offers: CHANGED_OFFERS.min(options.offers_max),
        // Each is shipped once: with fewer there would soon be none left.
        orders: part_of(options, ORDERS).max(100_000),
        stand: options.stand.clone(),
        report: options.report.clone(),
    }
}

fn webhooks(options: &AllOptions) -> DeliveriesOptions {
    DeliveriesOptions {
        deliveries: 10_000,
        subscriptions: 200,
        events: 200,
        dead: part_of(options, 100_000).max(10_000),
        pending: part_of(options, PENDING),
        stand: options.stand.clone(),
        report: options.report.clone(),
    }
}

fn stored(options: &AllOptions) -> StorageOptions {
    StorageOptions {
        offers: CHANGED_OFFERS.min(options.offers_max),
        orders: 60_000,
        updates: part_of(options, 200_000).max(20_000),
        wave: part_of(options, 20_000).max(5_000),
        waves: 5,
        stand: options.stand.clone(),
        report: options.report.clone(),
    }
}
