//! The process of `seller-api worker`: the workers alone, with a small listener to watch them by.

use std::process::ExitCode;

use crate::{
    config::Loaded, listeners::Reserved, open_files, outside::Outside, running, signals::Signals,
    wiring::Shared, workers,
};

/// Runs `worker`.
pub(crate) async fn work(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let signals = Signals::new()?;
    let config = &loaded.config;
    open_files::allow(config.webhooks.concurrency.get().into());
    let probes = Reserved::take(config.worker.bind, "--bind")?;
    // Without a public URL there is none to tell: this process serves nobody.
    let public_url = config.server.public_url_at(config.server.bind);
    let outside = Outside::real(config, &public_url)?;
    let shared = Shared::new(config, public_url, outside)?;
    let address = probes.address();
    let servers = vec![shared.probes(probes.listen()?)?];
    running::until_stopped(&shared, servers, signals, || {
        tracing::info!(probes = %address, "listening");
        workers::start(&shared);
        Ok(())
    })
    .await
}
