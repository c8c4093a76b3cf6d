//! Traces for a collector, where one is configured.

use std::{sync::OnceLock, time::Duration};

use adapter_telemetry::Telemetry;
use anyhow::Context as _;
use tokio::task::spawn_blocking;

use crate::{config::Config, logging};

/// The way to the collector, from [`start`] on.
static WAY: OnceLock<Telemetry> = OnceLock::new();

/// Starts the log, and beside it the traces where they are wanted. Not to be called on a thread of a runtime.
pub(crate) fn start(config: &Config) -> anyhow::Result<()> {
    let Some(settings) = config.tracing.settings(&config.server.service_name) else {
        logging::start(&config.log);
        return Ok(());
    };
    let (endpoint, ratio) = (settings.endpoint.clone(), settings.sample_ratio);
    let telemetry = Telemetry::begin(settings).context("configuration section `tracing` cannot be used")?;
    let way = WAY.get_or_init(|| telemetry);
    logging::start_traced(&config.log, way);
    tracing::info!(%endpoint, ratio, "requests are traced");
    Ok(())
}

/// Sends the last spans, for at most so long, and none from then on.
pub(crate) async fn end(within: Duration) {
    if let Some(way) = WAY.get()
        && spawn_blocking(move || way.end(within)).await.is_err()
    {
        tracing::warn!("the last spans may be missing at the collector");
    }
}
