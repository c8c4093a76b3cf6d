//! The parts of the bench. Each prints a table.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::context::{BenchContext, Options, SeededServer, chosen, step};
use crate::figures::{Spread, Table, real, whole};
use crate::load::{self, Latency, Sender};
use crate::measure::{Side, Subject, receivers, rounds};
use crate::program::Server;
use crate::scenario::Scenario;
use crate::seed::Catalogue;
use crate::usage::Memory;

/// Sizes of the catalogues in offers; the largest takes about 8 GB.
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Offers and sellers of one additional catalogue.
const MANY_SELLERS: Catalogue = Catalogue {
    offers: 1_000_000,
    sellers: 100_000,
};
/// The fraction of the capacity at which latencies are measured.
const LOAD: f64 = 0.5;
/// Number of times that the server is started.
const STARTS: usize = 10;
/// Idle connections with which the server's memory is measured.
const IDLE: u64 = 2_000;
/// Readers that wait at the journal.
const READERS: u64 = 1_000;
/// Requests on each connection before it idles, so that its buffers are allocated.
const REQUESTS_EACH: usize = 3;
/// Requests of each kind whose statements, rows and pages are counted.
const COUNTED: u32 = 1_000;
/// An idle backend reports its statistics within ten seconds.
const REPORTED: Duration = Duration::from_secs(11);
/// Longer than the allocator retains freed memory.
const GIVEN_BACK: Duration = Duration::from_secs(5);

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// An offer by its id, the first page of a list, a page at 90 % of its depth
    Reads,
    /// Changes of offers under an idempotency key, one by one and in batches of 100
    Writes,
    /// A full page of the event journal
    Journal,
    /// An offer by its id, while 1 000 readers wait at the journal
    Waiting,
    /// Tokens by client credentials, and refreshes
    Tokens,
    /// Webhook deliveries of a backlog
    Deliveries,
    /// Latency of requests that arrive at random, at half of the capacity
    Latency,
    /// Statements, rows and pages of a request that has no others beside it
    Counts,
    /// Time until `serve` is ready, and its memory with 2 000 idle connections
    Startup,
    /// The same requests as the catalogue grows to 10 000 000 offers
    Growth,
}

/// Which parts are run, and how.
#[derive(Debug, Args)]
pub(crate) struct PartsOptions {
    /// Parts, all of them by default
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    #[command(flatten)]
    options: Options,
}

/// Runs parts on one cluster and prints each table as soon as it is complete.
pub(crate) async fn run(parts: PartsOptions) -> anyhow::Result<()> {
    use Scenario::{Batch, DeepPage, Delivery, Journal, Offer, Page, Patch, Refresh, Token};
    let context = BenchContext::prepare(parts.options).await?;
    print(&context.description().await?)?;
    let mut seeded = None;
    for part in chosen(&parts.only) {
        if *part == Part::Growth {
            // Dropping it stops the server.
            seeded = None;
            print(&growth(&context).await?)?;
            continue;
        }
        if seeded.is_none() {
            let catalogue = Catalogue::new(context.options.offers, context.options.sellers);
            seeded = Some(SeededServer::start(&context, catalogue).await?);
        }
        let seeded = seeded.as_ref().context("the server was started")?;
        print(&match part {
            Part::Reads => beside_pgbench(&context, seeded, &[Offer, Page, DeepPage]).await?,
            Part::Writes => beside_pgbench(&context, seeded, &[Patch, Batch]).await?,
            Part::Journal => beside_pgbench(&context, seeded, &[Journal]).await?,
            Part::Waiting => waiting(&context, seeded).await?,
            Part::Tokens => beside_pgbench(&context, seeded, &[Token, Refresh]).await?,
            Part::Deliveries => beside_pgbench(&context, seeded, &[Delivery]).await?,
            Part::Latency => latency(&context, seeded, &[Offer, Page, Patch, Token, Refresh]).await?,
            Part::Counts => counts(&context, seeded, &[Offer, Page, DeepPage, Patch, Token, Refresh]).await?,
            Part::Startup => startup(&context, seeded).await?,
            Part::Growth => continue,
        })?;
    }
    Ok(())
}

/// Prints a paragraph or a table to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// Each scenario and its pgbench script.
async fn beside_pgbench(
    context: &BenchContext,
    seeded: &SeededServer,
    scenarios: &[Scenario],
) -> anyhow::Result<String> {
    let receivers = receivers(scenarios, seeded).await?;
    let mut subjects = Vec::new();
    for scenario in scenarios.iter().copied() {
        subjects.push(Subject::of_program(seeded, scenario, &seeded.server, receivers.as_ref()).await?);
        subjects.push(Subject::of_pgbench(seeded, scenario));
    }
    let measured = rounds(context, &subjects).await?;
    let titles = "a second | ÷ pgbench | goal | p50 ms | p99 ms | PostgreSQL µs | program µs | client µs";
    let mut table = Table::new(titles);
    for (subjects, pair) in subjects.chunks(2).zip(measured.chunks(2)) {
        for (subject, series) in subjects.iter().zip(pair) {
            let (title, rate) = (subject.title(), series.rate().whole());
            let ratio = series.ratio_to(pair.last().unwrap_or(series));
            let goal = subject.goal().map(|goal| format!("≥ {goal}")).unwrap_or_default();
            let (p50, p99) = (series.quantile(0.5)?, series.quantile(0.99)?);
            let [postgres, program, client] = series.cpu();
            table.row(format_args!(
                "{title} | {rate} | {ratio} | {goal} | {p50} | {p99} | {postgres:.1} | {program:.1} | {client:.1}"
            ));
        }
    }
    Ok(table.to_string())
}

/// An offer by its id, alone and while readers wait at the journal.
async fn waiting(context: &BenchContext, seeded: &SeededServer) -> anyhow::Result<String> {
    let scenario = Scenario::Offer;
    let counts = [0, READERS];
    let subjects = counts.map(|readers| Subject {
        seeded,
        scenario,
        side: Side::BesideReaders(readers),
    });
    let measured = rounds(context, &subjects).await?;
    let alone = measured.first().context("nothing was measured")?;
    let mut table = Table::new("readers | a second | ÷ alone | goal | PostgreSQL µs | program µs");
    for ((readers, goal), series) in counts.into_iter().zip(["", "≥ 0.95"]).zip(&measured) {
        let (title, rate, ratio) = (scenario.title(), series.rate().whole(), series.ratio_to(alone));
        let [postgres, program, _] = series.cpu();
        table.row(format_args!(
            "{title} | {readers} | {rate} | {ratio} | {goal} | {postgres:.1} | {program:.1}"
        ));
    }
    Ok(table.to_string())
}

/// Latencies of random arrivals, at a fraction of the rate that a closed loop has just reached.
async fn latency(
    context: &BenchContext,
    seeded: &SeededServer,
    scenarios: &[Scenario],
) -> anyhow::Result<String> {
    let options = &context.options;
    let measured = Duration::from_secs(options.seconds);
    let mut table = Table::new("a second | p50 ms | p95 ms | p99 ms | p99.9 ms | longest ms");
    for scenario in scenarios {
        step(&format!("latencies: {}", scenario.title()));
        let load = seeded.load(*scenario, &seeded.server).await?;
        let mut runs: Vec<(f64, Latency)> = Vec::new();
        for _ in 0..options.rounds {
            let counted = load::closed(&load, options.connections, measured, || Ok(())).await?;
            let rate = LOAD * real(counted.latencies.len()) / counted.elapsed.as_secs_f64();
            runs.push((rate, load::open(&load, rate, measured).await?));
            seeded.server.clear_log()?;
        }
        let quantile = |share: f64| {
            let microseconds = runs
                .iter()
                .map(|(_, latencies)| latencies.value_at_quantile(share));
            Spread::of(microseconds.map(|microseconds| real(microseconds) / 1e3)).to_string()
        };
        let rate = whole(Spread::of(runs.iter().map(|(rate, _)| *rate)).median());
        let quantiles = [0.5, 0.95, 0.99, 0.999, 1.0].map(quantile).join(" | ");
        table.row(format_args!("{} | {rate} | {quantiles}", scenario.title()));
    }
    Ok(table.to_string())
}

/// What a request costs the database, on average: statements, and the rows and pages that they read.
async fn counts(
    context: &BenchContext,
    seeded: &SeededServer,
    scenarios: &[Scenario],
) -> anyhow::Result<String> {
    let done = async || {
        tokio::time::sleep(REPORTED).await;
        let mut all = [seeded.server.statements().await?, 0.0, 0.0];
        let database = &seeded.database.name;
        for (sum, count) in all
            .iter_mut()
            .skip(1)
            .zip(["tup_returned + tup_fetched", "blks_hit + blks_read"])
        {
            let sql = format!("select {count} from pg_stat_database where datname = '{database}'");
            *sum = context.cluster.value("postgres", &sql).await?.parse()?;
        }
        anyhow::Ok(all)
    };
    let mut table = Table::new("statements | rows | pages");
    for scenario in scenarios {
        step(&format!("counts: {}", scenario.title()));
        let load = seeded.load(*scenario, &seeded.server).await?;
        let before = done().await?;
        // A connection has little time for its first request.
        let mut sender = Sender::open(&load, 0).await?;
        for _ in 0..COUNTED {
            sender.exchange().await?;
        }
        let mut before = before.into_iter();
        let counts = done().await?.map(|after| {
            let count = (after - before.next().unwrap_or_default()) / f64::from(COUNTED);
            format!("{count:.1}")
        });
        table.row(format_args!("{} | {}", scenario.title(), counts.join(" | ")));
    }
    Ok(table.to_string())
}

/// Time until `serve` is ready, and its memory while connections idle.
async fn startup(context: &BenchContext, seeded: &SeededServer) -> anyhow::Result<String> {
    let (program, cluster) = (&context.program, &context.cluster);
    let mut ready = Vec::new();
    step("starting servers");
    for _ in 0..STARTS {
        let server = Server::start("serve", program, cluster, &seeded.database).await?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        server.stop().await?;
    }
    step("opening connections");
    let server = Server::start("serve", program, cluster, &seeded.database).await?;
    let alone = Memory::of(server.pid)?;
    let load = seeded.load(Scenario::Offer, &server).await?;
    let mut open = Vec::new();
    for _ in 0..IDLE {
        let mut sender = Sender::open(&load, 0).await?;
        for _ in 0..REQUESTS_EACH {
            sender.exchange().await?;
        }
        open.push(sender);
    }
    tokio::time::sleep(GIVEN_BACK).await;
    let with_all = Memory::of(server.pid)?;
    // The first connection still works: the server has closed none.
    if let Some(first) = open.first_mut() {
        first.exchange().await?;
    }
    drop(open);
    server.stop().await?;
    let (ready, idle) = (Spread::of(ready).whole(), whole(real(IDLE)));
    let (alone, all, peak) = (alone.resident, with_all.resident, with_all.peak);
    let mut table = Table::new("result | goal");
    table.row(format_args!("`serve` ready, ms | {ready} | ≤ 300"));
    table.row(format_args!("resident when ready, MB | {alone:.0} | "));
    table.row(format_args!(
        "resident with {idle} used and idle connections, MB | {all:.0} | ≤ 100"
    ));
    table.row(format_args!("… and at most until then, MB | {peak:.0} | "));
    Ok(table.to_string())
}

/// The same requests over catalogues of several sizes, and with many sellers.
async fn growth(context: &BenchContext) -> anyhow::Result<String> {
    let catalogues = SIZES.map(|offers| Catalogue::new(offers, context.options.sellers));
    let mut servers = Vec::new();
    for catalogue in catalogues.into_iter().chain([MANY_SELLERS]) {
        servers.push(SeededServer::start(context, catalogue).await?);
    }
    let mut subjects = Vec::new();
    // Groups the subjects by scenario, smallest catalogue first.
    for scenario in [Scenario::Offer, Scenario::Page, Scenario::Patch] {
        for seeded in &servers {
            subjects.push(Subject::of_program(seeded, scenario, &seeded.server, None).await?);
        }
    }
    subjects.extend(
        servers
            .iter()
            .map(|seeded| Subject::of_pgbench(seeded, Scenario::Offer)),
    );
    let measured = rounds(context, &subjects).await?;
    let mut table = Table::new("offers | sellers | a second | ÷ the smallest | PostgreSQL µs | program µs");
    for (subjects, kind) in subjects.chunks(servers.len()).zip(measured.chunks(servers.len())) {
        let smallest = kind.first().context("no size was measured")?;
        for (subject, series) in subjects.iter().zip(kind) {
            let Catalogue { offers, sellers } = subject.seeded.seed.catalogue;
            let (title, rate, ratio) = (subject.title(), series.rate().whole(), series.ratio_to(smallest));
            let [offers, sellers] = [offers, sellers].map(|count| whole(real(count)));
            let [postgres, program, _] = series.cpu();
            table.row(format_args!(
                "{title} | {offers} | {sellers} | {rate} | {ratio} | {postgres:.1} | {program:.1}"
            ));
        }
    }
    Ok(table.to_string())
}
