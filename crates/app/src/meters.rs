//! What the program measures of itself: the table of its metrics, the recorder, and what is looked up when it is asked for.

mod queues;
pub mod reference;
pub mod table;

use std::time::Duration;

use adapter_postgres::Database;
use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use rustix::process::{Resource, getrlimit};
use tokio::time::sleep;

pub(crate) use self::queues::watch_queues;

/// How often histograms are moved to where they are rendered from.
const UPKEEP: Duration = Duration::from_secs(5);
/// Bounds of the histograms, in seconds.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0,
];
/// The same for what strangers take their time over.
const PATIENT_BUCKETS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 30.0, 120.0,
];
/// Bounds for how many go together.
const SIZES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// What `/metrics` answers by. Clones are the same.
#[derive(Clone)]
pub(crate) struct Meters {
    recorder: PrometheusHandle,
    process: Collector,
    database: Option<Database>,
}

impl Meters {
    /// Makes this process one that measures itself. Before anything else that counts: what looks its meters up earlier counts
    /// for nobody.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let recorder = recorder()?.install_recorder();
        let recorder = recorder.context("the recorder of metrics")?;
        for meter in table::meters() {
            meter.describe();
            meter.begin();
        }
        metrics::gauge!("build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self {
            recorder,
            process: Collector::default(),
            database: None,
        })
    }

    /// With the database whose pool is looked at.
    pub(crate) fn of(self, database: &Database) -> Self {
        Self {
            database: Some(database.clone()),
            ..self
        }
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn render(&self) -> String {
        self.process.collect();
        look_at_addresses();
        if let Some(database) = &self.database {
            look_at_pool(database);
        }
        self.recorder.render()
    }

    /// Moves what histograms have gathered to where it is rendered from, again and again, so that memory stays bounded where
    /// nobody asks.
    pub(crate) async fn keep_up(self) {
        loop {
            sleep(UPKEEP).await;
            self.recorder.run_upkeep();
        }
    }
}

fn recorder() -> anyhow::Result<PrometheusBuilder> {
    let deliveries = Matcher::Prefix("webhook_".to_owned());
    let sizes = Matcher::Full("database_group_size".to_owned());
    Ok(PrometheusBuilder::new()
        .set_buckets(&BUCKETS)?
        .set_buckets_for_metric(deliveries, &PATIENT_BUCKETS)?
        .set_buckets_for_metric(sizes, &SIZES)?)
}

fn look_at_pool(database: &Database) {
    let pool = database.pool_state();
    metrics::gauge!("database_pool_connections_max").set(number(pool.most));
    metrics::gauge!("database_pool_connections", "state" => "in_use").set(number(pool.in_use));
    metrics::gauge!("database_pool_connections", "state" => "idle").set(number(pool.idle));
    metrics::gauge!("database_pool_waiting").set(number(pool.waiting));
}

/// The library tells a limit that is none as 0.
fn look_at_addresses() {
    if getrlimit(Resource::As).current.is_none() {
        metrics::gauge!("process_virtual_memory_max_bytes").set(f64::INFINITY);
    }
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// Notes whether the process can do its work.
pub(crate) fn note_readiness(ready: bool) {
    metrics::gauge!("ready").set(if ready { 1.0 } else { 0.0 });
}

#[cfg(test)]
mod tests;
