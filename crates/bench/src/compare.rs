//! Two builds of the program over one database, in turns: what a change has given, in one run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::chosen::chosen;
use crate::figures::{ratio_spread, whole_spread};
use crate::load::Load;
use crate::measure::{CpuEach, Subject, Work};
use crate::noise::Patience;
use crate::options::CompareOptions;
use crate::program::Program;
use crate::progress::Progress;
use crate::read::subjects;
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
    let mut all = subjects::of(&options.stand, &stand).await?;
    if options.orders > 0 {
        all.extend(write::subjects_on(&options.stand, cluster, &stand, options.orders, progress).await?);
    }
    stand.settle(cluster).await?;
    all.retain(|subject| matches!(subject.work, Work::Http(..)));
    let chosen = chosen(all, &options.subjects)?.into_iter();
    let pairs = chosen.filter_map(|subject| Some([elsewhere(&subject, &stand.server, &before)?, subject]));
    let pairs = pairs.flatten().collect();
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(cluster, pairs, options.rounds, &mut patience, progress).await?;
    std::io::stdout().write_all(table(&measured)?.as_bytes())?;
    for server in [before, stand.server] {
        server.stop().await?;
    }
    Ok(())
}

/// The same requests of another server; nothing for what is no request.
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
