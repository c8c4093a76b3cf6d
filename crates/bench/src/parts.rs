//! The parts of the bench. Each prints a table.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::context::{BenchContext, Options, SeededServer, chosen, step};
use crate::figures::{Spread, Table, real, whole};
use crate::load::Sender;
use crate::measure::{Side, Subject, receivers, rounds};
use crate::program::Server;
use crate::scenario::Scenario;
use crate::seed::Catalogue;

/// Sizes of the two catalogues in offers; the larger takes about 8 GB.
const SIZES: [u64; 2] = [10_000, 10_000_000];
/// Number of times that the server is started.
const STARTS: usize = 10;
/// Readers that wait at the journal.
const READERS: u64 = 1_000;
/// Requests of each kind whose statements, rows and pages are counted.
const COUNTED: u32 = 1_000;
/// An idle backend reports its statistics within ten seconds.
const REPORTED: Duration = Duration::from_secs(11);

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
    /// Statements, rows and pages of a request that has no others beside it
    Counts,
    /// Time until `serve` is ready
    Startup,
    /// A page of offers as the catalogue grows to 10 000 000
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
            Part::Reads => throughput(&context, seeded, &[Offer, Page, DeepPage]).await?,
            Part::Writes => throughput(&context, seeded, &[Patch, Batch]).await?,
            Part::Journal => throughput(&context, seeded, &[Journal]).await?,
            Part::Waiting => waiting(&context, seeded).await?,
            Part::Tokens => throughput(&context, seeded, &[Token, Refresh]).await?,
            Part::Deliveries => throughput(&context, seeded, &[Delivery]).await?,
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

/// Each scenario, and its pgbench script if it has one.
async fn throughput(
    context: &BenchContext,
    seeded: &SeededServer,
    scenarios: &[Scenario],
) -> anyhow::Result<String> {
    let receivers = receivers(scenarios, seeded).await?;
    let mut subjects = Vec::new();
    for scenario in scenarios.iter().copied() {
        subjects.push(Subject::of_program(seeded, scenario, &seeded.server, receivers.as_ref()).await?);
        subjects.extend(Subject::of_pgbench(seeded, scenario));
    }
    let measured = rounds(context, &subjects).await?;
    let titles = "a second | ÷ pgbench | goal | p50 ms | p99 ms | PostgreSQL µs | program µs | client µs";
    let mut table = Table::new(titles);
    let rows: Vec<_> = subjects.iter().zip(&measured).collect();
    for group in rows.chunk_by(|(one, _), (next, _)| one.scenario == next.scenario) {
        for (subject, series) in group {
            let (title, rate) = (subject.title(), series.rate().whole());
            let ratio = match group {
                [_, (_, pgbench)] => series.ratio_to(pgbench).to_string(),
                _ => String::new(),
            };
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
    let counts = [0, READERS];
    let subjects = counts.map(|readers| Subject {
        seeded,
        scenario: Scenario::Offer,
        side: Side::BesideReaders(readers),
    });
    second_to_first(context, &subjects, "readers", counts, "≥ 0.95").await
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

/// Time until `serve` is ready.
async fn startup(context: &BenchContext, seeded: &SeededServer) -> anyhow::Result<String> {
    let (program, cluster) = (&context.program, &context.cluster);
    let mut ready = Vec::new();
    step("starting servers");
    for _ in 0..STARTS {
        let server = Server::start("serve", program, cluster, &seeded.database).await?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        server.stop().await?;
    }
    let ready = Spread::of(ready).whole();
    let mut table = Table::new("result | goal");
    table.row(format_args!("`serve` ready, ms | {ready} | ≤ 300"));
    Ok(table.to_string())
}

/// A page of offers over a small and a large catalogue.
async fn growth(context: &BenchContext) -> anyhow::Result<String> {
    let catalogues = SIZES.map(|offers| Catalogue::new(offers, context.options.sellers));
    let mut servers = Vec::new();
    for catalogue in catalogues {
        servers.push(SeededServer::start(context, catalogue).await?);
    }
    let mut subjects = Vec::new();
    for seeded in &servers {
        subjects.push(Subject::of_program(seeded, Scenario::Page, &seeded.server, None).await?);
    }
    let counts = catalogues.map(|catalogue| catalogue.offers);
    second_to_first(context, &subjects, "offers", counts, "≥ 0.9").await
}

/// Two subjects, which differ in a count, and the ratio of the second to the first.
async fn second_to_first(
    context: &BenchContext,
    subjects: &[Subject<'_>],
    counted: &str,
    counts: [u64; 2],
    goal: &str,
) -> anyhow::Result<String> {
    let measured = rounds(context, subjects).await?;
    let first = measured.first().context("nothing was measured")?;
    let titles = format!("{counted} | a second | ÷ the first | goal | PostgreSQL µs | program µs");
    let mut table = Table::new(&titles);
    for (((subject, series), count), goal) in subjects.iter().zip(&measured).zip(counts).zip(["", goal]) {
        let (title, count) = (subject.title(), whole(real(count)));
        let (rate, ratio) = (series.rate().whole(), series.ratio_to(first));
        let [postgres, program, _] = series.cpu();
        table.row(format_args!(
            "{title} | {count} | {rate} | {ratio} | {goal} | {postgres:.1} | {program:.1}"
        ));
    }
    Ok(table.to_string())
}
