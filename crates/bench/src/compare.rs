//! Compares two builds of the program over one database, in alternation.

use std::path::PathBuf;

use clap::Args;

use crate::context::{BenchContext, Options, SeededServer, chosen};
use crate::figures::Table;
use crate::measure::{Subject, receivers, rounds};
use crate::parts::print;
use crate::program::{Program, Server};
use crate::scenario::Scenario;
use crate::seed::Catalogue;

/// Which builds are compared, and by what.
#[derive(Debug, Args)]
#[command(mut_arg("rounds", |rounds| rounds.default_value("9")))]
#[command(mut_arg("offers", |offers| offers.default_value("200000")))]
#[command(mut_arg("server", |server| server.hide(true)))]
pub(crate) struct CompareOptions {
    /// The program before the change
    old: PathBuf,
    /// The program after it; its migrations are applied
    new: PathBuf,
    /// Scenarios, all of them by default
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,
    #[command(flatten)]
    options: Options,
}

/// Measures both builds in each round, and prints the table.
///
/// Both builds share the token families and the numbers of requests, so that each continues where the other
/// stopped.
pub(crate) async fn run(compare: CompareOptions) -> anyhow::Result<()> {
    let options = Options {
        server: Some(compare.new),
        ..compare.options
    };
    let context = BenchContext::prepare(options).await?;
    print(&context.description().await?)?;
    let catalogue = Catalogue::new(context.options.offers, context.options.sellers);
    let seeded = SeededServer::start(&context, catalogue).await?;
    let old = Program::locate(Some(&compare.old)).await?;
    let old = Server::start("serve", &old, &context.cluster, &seeded.database).await?;
    let scenarios = chosen(&compare.only);
    let receivers = receivers(scenarios, &seeded).await?;
    let mut subjects = Vec::new();
    for scenario in scenarios.iter().copied() {
        for server in [&old, &seeded.server] {
            subjects.push(Subject::of_program(&seeded, scenario, server, receivers.as_ref()).await?);
        }
    }
    let measured = rounds(&context, &subjects).await?;
    let mut table = Table::new("old, a second | new, a second | new ÷ old | PostgreSQL µs | program µs");
    for (scenario, pair) in scenarios.iter().zip(measured.chunks(2)) {
        let [old, new] = pair else { continue };
        let (title, ratio) = (scenario.title(), new.ratio_to(old));
        let ([postgres, program, _], [new_postgres, new_program, _]) = (old.cpu(), new.cpu());
        let (old, new) = (old.rate().whole(), new.rate().whole());
        table.row(format_args!(
            "{title} | {old} | {new} | {ratio} | {postgres:.1} → {new_postgres:.1} | {program:.1} → {new_program:.1}"
        ));
    }
    print(&table.to_string())
}
