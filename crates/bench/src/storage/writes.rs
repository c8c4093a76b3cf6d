//! What operations write ahead.

use std::time::Duration;

use super::operations::{Kind, Operation};
use super::shop::Shop;
use crate::load::{self, Load};
use crate::pgbench;
use crate::progress::Progress;
use crate::requests::Calls;
use crate::server::Server;
use crate::wal::{self, Sample};

/// For how long requests are sent.
const SENT: Duration = Duration::from_millis(500);
/// For how long pgbench runs, which counts whole seconds.
const RUN: Duration = Duration::from_secs(1);

/// What an operation writes, in each round.
#[derive(Debug)]
pub(super) struct Writes {
    /// By what it is found.
    pub(super) key: &'static str,
    /// What the report calls it.
    pub(super) title: String,
    /// How many are under way at once.
    pub(super) at_once: usize,
    /// The rounds.
    pub(super) samples: Vec<Sample>,
}

impl Writes {
    fn of(operation: &Operation, at_once: usize) -> Self {
        Self {
            key: operation.key,
            title: operation.title.clone(),
            at_once,
            samples: Vec::new(),
        }
    }
}

/// Requests alone and many at once, on a server of their own.
pub(super) async fn of_requests(
    shop: &Shop<'_>,
    operations: &[Operation],
    rounds: u64,
    progress: Progress,
) -> anyhow::Result<Vec<Writes>> {
    let step = progress.counted("what requests write", rounds + 1);
    let mut all = Vec::new();
    for operation in operations {
        if let Kind::Calls(calls, connections) = &operation.kind {
            for at_once in [1, *connections] {
                all.push((calls, Writes::of(operation, at_once)));
            }
        }
    }
    let server = shop.serve().await?;
    for round in 0..=rounds {
        for (calls, writes) in &mut all {
            step.now(&format!("round {round} of {rounds}: {}", writes.title));
            let sample = requests(shop, &server, calls, writes.at_once).await?;
            // The first round prepares statements.
            writes.samples.extend((round > 0).then_some(sample));
        }
        step.advance(1);
    }
    server.stop().await?;
    Ok(all.into_iter().map(|(_, writes)| writes).collect())
}

/// pgbench's scripts.
pub(super) async fn of_scripts(
    shop: &Shop<'_>,
    operations: &[Operation],
    rounds: u64,
    progress: Progress,
) -> anyhow::Result<Vec<Writes>> {
    let step = progress.counted("what pgbench's scripts write", rounds);
    let mut all = Vec::new();
    for operation in operations {
        if let Kind::Script(script, clients) = &operation.kind {
            all.push((script, Writes::of(operation, *clients)));
        }
    }
    for round in 1..=rounds {
        for (script, writes) in &mut all {
            step.now(&format!("round {round} of {rounds}: {}", writes.title));
            shop.sql("checkpoint").await?;
            let before = wal::place(shop.cluster()).await?;
            let run = pgbench::run(shop.cluster(), script, writes.at_once, RUN).await?;
            writes.samples.push(Sample {
                operations: run.transactions,
                written: wal::since(shop.cluster(), &before).await?,
            });
        }
        step.advance(1);
    }
    Ok(all.into_iter().map(|(_, writes)| writes).collect())
}

async fn requests(shop: &Shop<'_>, server: &Server, calls: &Calls, at_once: usize) -> anyhow::Result<Sample> {
    let load = Load {
        server: server.address(calls.listener),
        connections: at_once,
        requests: calls.requests.clone(),
        expected: calls.expected,
        warm_up: Duration::ZERO,
        measured: SENT,
    };
    // What is changed for the first time after it is written whole.
    shop.sql("checkpoint").await?;
    let before = wal::place(shop.cluster()).await?;
    let (interval, ()) = load::run(&load, || Ok(()), |()| Ok(())).await?;
    let written = wal::since(shop.cluster(), &before).await?;
    server.clear_log()?;
    Ok(Sample {
        operations: interval.requests,
        written,
    })
}
