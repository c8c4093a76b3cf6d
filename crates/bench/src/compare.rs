//! Two builds of the program over one database, in turns: what a change has given, in one run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::chosen;
use crate::figures::{ratio_spread, whole_spread};
use crate::load::Load;
use crate::measure::{CpuEach, Subject, Work};
use crate::noise::Patience;
use crate::options::CompareOptions;
use crate::program::Program;
use crate::progress::Progress;
use crate::rounds::{self, Measured};
use crate::server::Server;
use crate::stand::{Ground, Stand};
use crate::write;

/// Measures both by every subject that is a request, next to each other in each round, and prints the table.
pub(crate) async fn run(options: &CompareOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    let ground = Ground::prepare(&options.stand, progress).await?;
    let cluster = &ground.cluster;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let stand = Stand::raise(cluster, &ground.program, "bench", catalogue, progress).await?;
    let before = Program::locate(Some(&options.before)).await?;
    let log = cluster.scratch("before.log");
    let before = Server::start(&before, &cluster.url(&stand.database), &stand.key, &log).await?;
    let orders = orders(options);
    let mut all = chosen::all_on(&options.stand, cluster, &stand, orders, progress).await?;
    stand.settle(cluster).await?;
    all.retain(|subject| matches!(subject.work, Work::Http(..)));
    let chosen = chosen::chosen(all, &options.subjects)?.into_iter();
    let pairs = chosen.filter_map(|subject| Some([elsewhere(&subject, &stand.server, &before)?, subject]));
    let pairs: Vec<_> = pairs.flatten().collect();
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    // A plan that was made while a table was nearly empty is kept until the table is analyzed, and the build that asked first would
    // have the worse one.
    rounds::run(cluster, pairs.clone(), 0, &mut patience, progress).await?;
    stand.settle(cluster).await?;
    let measured = rounds::run(cluster, pairs, options.rounds, &mut patience, progress).await?;
    std::io::stdout().write_all(table(&measured)?.as_bytes())?;
    for server in [before, stand.server] {
        server.stop().await?;
    }
    Ok(())
}

/// As many orders as were asked for; otherwise none, or where a subject needs them more than both builds ship: in each round, and
/// in the two that warm up, each for a second more than is measured, at most.
fn orders(options: &CompareOptions) -> u64 {
    let is_write = |name: &String| write::key::ALL.contains(&name.as_str());
    let needed = if options.subjects.iter().any(is_write) {
        write::orders_for(2 * (options.rounds + 2) * (options.stand.seconds + 1))
    } else {
        0
    };
    options.orders.unwrap_or(needed)
}

/// The same requests of another server; nothing for what is no request. Both draw from one source, and never at once: what can be
/// asked only once, as a shipment or a refresh, is asked of one of them, and the other goes on from there.
fn elsewhere<'a>(subject: &Subject<'a>, own: &Server, other: &'a Server) -> Option<Subject<'a>> {
    let Work::Http(_, load) = &subject.work else {
        return None;
    };
    let public = load.server == own.public;
    let load = Load {
        server: if public { other.public } else { other.back_office },
        ..load.clone()
    };
    Some(Subject {
        work: Work::Http(other, load),
        ..subject.clone()
    })
}

/// One line for each pair.
fn table(measured: &[Measured]) -> anyhow::Result<String> {
    let mut text = String::from(
        "| | before, a second | after, a second | after ÷ before | PostgreSQL µs | server µs | sum µs | statements |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for pair in measured.chunks(2) {
        let [before, after] = pair else {
            return Err(anyhow::anyhow!("a subject was measured alone"));
        };
        let cost = |figure: fn(&CpuEach) -> f64| {
            let middle = |measured: &Measured| measured.middle(|sample| figure(&sample.cpu));
            format!("{:.1} → {:.1}", middle(before), middle(after))
        };
        let statements = |measured: &Measured| measured.middle(|sample| sample.statements.count);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {:.2} → {:.2} |",
            after.title,
            whole_spread(before.rate()),
            whole_spread(after.rate()),
            ratio_spread(after.ratio_to(before)),
            cost(|cpu| cpu.postgres),
            cost(|cpu| cpu.server),
            cost(CpuEach::sum),
            statements(before),
            statements(after),
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        options: CompareOptions,
    }

    fn orders_with(arguments: &str) -> u64 {
        let arguments = format!("compare --before x --rounds 2 --seconds 3 {arguments}");
        orders(&Arguments::parse_from(arguments.split_whitespace()).options)
    }

    #[test]
    fn there_are_orders_where_a_subject_needs_them() {
        assert_eq!(orders_with(""), 0);
        assert_eq!(orders_with("--subject refresh --subject offer"), 0);
        assert_eq!(orders_with("--subject shipment"), write::orders_for(32));
        assert_eq!(orders_with("--subject offer --subject patch --orders 7"), 7);
    }
}
