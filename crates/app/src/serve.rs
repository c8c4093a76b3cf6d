//! The main job: both servers over the database, with the workers beside them or without.

use std::process::ExitCode;

use ipnet::IpNet;

use crate::{
    config::{Config, Loaded, ServerConfig, WorkersMode},
    listeners::{Reserved, reserve},
    open_files,
    outside::Outside,
    running,
    signals::Signals,
    tls::Secured,
    wiring::Shared,
    workers,
};

/// A service whose configuration is in order and whose addresses are taken, but that does not listen yet.
pub(crate) struct Service {
    shared: Shared,
    public: Reserved,
    backoffice: Reserved,
    secured: Secured,
}

/// Runs `serve`.
pub(crate) async fn serve(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let signals = Signals::new()?;
    let config = &loaded.config;
    let (public, backoffice) = reserve(
        config.server.bind,
        config.server.backoffice_bind,
        ["--bind", "--backoffice-bind"],
    )?;
    let outside = Outside::real(config, &config.server.public_url_at(public.address()))?;
    let secured = Secured::load(&config.server, &outside.clock).await?;
    Service::new(config, public, backoffice, outside)?
        .secured(secured)
        .run(signals, || Ok(()))
        .await
}

impl Service {
    /// Puts everything together; connects to nothing yet.
    pub(crate) fn new(
        config: &Config,
        public: Reserved,
        backoffice: Reserved,
        outside: Outside,
    ) -> anyhow::Result<Self> {
        let public_url = config.server.public_url_at(public.address());
        for network in believing_anybody(&config.server) {
            tracing::warn!(
                "ANYBODY is believed in what `X-Forwarded-For` says, so that clients choose the address by which they are \
                 limited and noted: `server.trusted_proxies` holds {network}; name the proxies alone"
            );
        }
        Ok(Self {
            shared: Shared::new(config, public_url, outside)?,
            public,
            backoffice,
            secured: Secured::default(),
        })
    }

    /// The same with TLS of its listeners' own.
    #[must_use]
    pub(crate) fn secured(mut self, secured: Secured) -> Self {
        self.secured = secured;
        self
    }

    /// Serves until a signal comes and all that runs is finished. `listening` is called once both listeners answer.
    pub(crate) async fn run(
        self,
        signals: Signals,
        listening: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let Self {
            shared,
            public,
            backoffice,
            secured,
        } = self;
        let (server, webhooks) = (&shared.config.server, &shared.config.webhooks);
        open_files::allow(
            server
                .max_connections
                .saturating_add(webhooks.concurrency.get().into()),
        );
        let [public_tls, backoffice_tls] = secured.acceptors();
        let _reloading = secured.keep_current()?;
        let addresses = (public.address(), backoffice.address());
        let servers = vec![
            shared.public(public.listen()?, public_tls)?,
            shared.backoffice(backoffice.listen()?, backoffice_tls)?,
        ];
        running::until_stopped(&shared, servers, signals, || {
            tracing::info!(public = %addresses.0, backoffice = %addresses.1, "listening");
            workers::start_counting(&shared);
            if shared.config.server.workers == WorkersMode::All {
                workers::start(&shared);
            }
            listening()
        })
        .await
    }
}

/// The trusted networks that hold every address of their kind.
fn believing_anybody(server: &ServerConfig) -> impl Iterator<Item = IpNet> {
    let trusted = server.trusted_proxies.0.iter().map(|proxy| proxy.0);
    trusted.filter(|network| network.prefix_len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_networks_of_everybody_are_warned_of() {
        let server: ServerConfig = serde_json::from_value(serde_json::json!({
            "trusted_proxies": ["0.0.0.0/0", "10.0.0.0/8", "::/0", "127.0.0.1", "fd00::/8"],
        }))
        .unwrap();
        let told: Vec<_> = believing_anybody(&server)
            .map(|network| network.to_string())
            .collect();
        assert_eq!(told, ["0.0.0.0/0", "::/0"]);
    }
}
