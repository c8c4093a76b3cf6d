//! The sandbox: the service with its own database and example data.

mod data_dir;
mod database;
mod guide;
mod observing;
mod plan;
mod seed;
mod walk;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use adapter_carriers::SimulatedCarriers;
use adapter_sandbox_page::{SandboxPage, Settings, shippable};
use adapter_sealing::SystemClock;
use anyhow::{Context as _, bail};
use kernel::error_chain;
use tokio::sync::watch;
use web::Observer;
use webhooks::AddressPolicy;

use self::data_dir::{Credentials, DataDir};
use self::database::SandboxDatabase;
use self::observing::Observing;
use crate::command::print;
use crate::config::{Config, Loaded, Period, TlsConfig, reachable};
use crate::external_services::ExternalServices;
use crate::http_server::BoundSocket;
use crate::process::Signals;
use crate::serve;
use crate::wiring::{self, Shared};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The port of /v1 and /oauth; 0 takes a free one [default: 8080]
    #[arg(long)]
    port: Option<u16>,
    /// The port of the back office; 0 takes a free one [default: 8081]
    #[arg(long)]
    backoffice_port: Option<u16>,
    /// The data directory
    #[arg(long, value_name = "FOLDER", default_value = ".sandbox")]
    data_dir: PathBuf,
    /// Start with fresh data: delete everything of earlier sandboxes in the data directory
    #[arg(long)]
    fresh: bool,
}

/// Runs `sandbox`. However this process ends, the private PostgreSQL ends with it.
pub(crate) async fn run(loaded: Loaded, options: Options) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let (shared, sockets, home, guide, _in_use) = tokio::select! {
        prepared = prepare(loaded, options) => prepared?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let outcome = serve::run(shared, sockets, signals, || {
        // It serves also those who do not read this.
        if let Err(error) = print(guide) {
            tracing::warn!(cause = error_chain(&error), "the first steps cannot be printed");
        }
    })
    .await;
    let stopped = home.stop().await;
    if let (Err(_), Err(error)) = (&outcome, &stopped) {
        tracing::warn!(
            cause = error_chain(error.as_ref()),
            "PostgreSQL did not shut down cleanly"
        );
    }
    let code = outcome?;
    stopped.map(|()| code)
}

/// The service, its sockets and database, the text to print once it serves, and the data directory, locked until
/// this is dropped.
async fn prepare(
    loaded: Loaded,
    options: Options,
) -> anyhow::Result<(Shared, [BoundSocket; 2], SandboxDatabase, String, DataDir)> {
    let data_dir = DataDir::open(&options.data_dir)?;
    let mut config = loaded.config.clone();
    let (public, backoffice) = bind(&mut config, &options)?;
    if loaded.source("server.drain").is_none() {
        // No load balancer needs a drain period, and Ctrl-C should end a sandbox at once.
        config.server.drain = Period::default();
    }
    if loaded.source("webhooks.addresses").is_none() {
        config.webhooks.addresses = AddressPolicy::Local;
    }
    // It serves this machine only, and prints plain addresses.
    config.server.tls = TlsConfig::default();
    config.server.backoffice_tls = TlsConfig::default();
    if options.fresh {
        // `--fresh` deletes a sandbox's data, but a configured database may hold other data.
        if let Some(source) = loaded.source("database.url") {
            bail!("--fresh works on the private PostgreSQL alone, and a database is named in {source}");
        }
        data_dir.clear()?;
    }
    if config.keys.sealing.is_empty() {
        config.keys.sealing = vec![data_dir.sealing_key()?];
    }
    let home = SandboxDatabase::open(&loaded, &data_dir, options.fresh).await?;
    config.database.url = Some(home.url.clone().into());
    let database = wiring::database(&config)?;
    home.migrate_and_mark(&database, config.database.layout, &data_dir)
        .await
        .context("cannot prepare the database")?;
    let known = seed::seed_once(&database, &data_dir, config.poll_schedule()).await?;
    let credentials = Credentials {
        base_url: config.server.public_url_at(public.address()),
        backoffice_url: format!("http://{}", reachable(backoffice.address())),
        database_url: home.url.clone(),
        ..known
    };
    data_dir.keep(&credentials)?;
    let carriers = Arc::new(SimulatedCarriers::new(Arc::new(SystemClock)));
    let simulated = Arc::clone(&carriers);
    let external = ExternalServices::simulated(&config, &credentials.base_url, data_dir.mails(), simulated)?;
    let observing = Observing::default();
    let external = observing.services(external);
    let observer: Arc<dyn Observer> = Arc::new(observing.clone());
    let api_url = format!("http://{}", reachable(public.address()));
    let mut shared = Shared::new(&config, credentials.base_url.clone(), external, Some(observer))?;
    let Some(first) = credentials.sellers.first() else {
        bail!("the sandbox has no sellers: begin anew with --fresh");
    };
    let owner = first.account.id.into();
    let sellers = credentials.sellers.iter().map(|seller| seller.account.clone());
    let (all, sellers) = watch::channel(sellers.collect());
    observing.follow(&shared, all);
    let client_id = walk::register_client(&database, owner, format!("{api_url}/sandbox/client")).await;
    let client_id = client_id.inspect_err(|error| {
        tracing::warn!(
            cause = error_chain(error.as_ref()),
            "cannot register the sandbox's OAuth client"
        );
    });
    // The service's own pool: the one that seeded would log the loss of its connections at the stop.
    let readers = &shared.database;
    let order = shippable(&*readers.order_reader(), owner).await?;
    let addresses = config.webhooks.addresses;
    let guide = guide::text(&credentials, first, data_dir.folder(), addresses, &api_url, order);
    let parcels = readers.clone();
    let page = SandboxPage::new(Settings {
        api_url,
        backoffice_url: credentials.backoffice_url.clone(),
        backoffice_token: credentials.backoffice_token.clone(),
        sellers,
        client_id: client_id.map_or_else(|_| String::new(), |client_id| client_id.to_string()),
        mails: data_dir.mails(),
        set_parcel: Arc::new(move |number, status| {
            let database = parcels.clone();
            carriers.set(number.clone(), status);
            Box::pin(async move { database.ask_about_parcels(number.as_str()).await })
        }),
        offers: readers.offer_reader(),
        orders: readers.order_reader(),
        directory: readers.order_directory(),
        applications: readers.application_directory(),
        subscriptions: readers.subscriptions(),
        timeline: observing.timeline,
        clock: Arc::new(SystemClock),
        randomness: shared.randomness.clone(),
        service: Arc::clone(&shared.service),
        tasks: shared.tasks.clone(),
    });
    shared.page = Some(Arc::new(page.context("the sandbox's page cannot be set up")?));
    Ok((shared, [public, backoffice], home, guide, data_dir))
}

/// Binds both addresses, with the ports in the options.
fn bind(config: &mut Config, options: &Options) -> anyhow::Result<(BoundSocket, BoundSocket)> {
    let (public, backoffice) = (&mut config.server.bind.0, &mut config.server.backoffice_bind.0);
    public.set_port(options.port.unwrap_or(public.port()));
    backoffice.set_port(options.backoffice_port.unwrap_or(backoffice.port()));
    let (public, backoffice) = (*public, *backoffice);
    if config.server.shares_a_port() {
        bail!(
            "--backoffice-port must be another than --port, which is {}",
            public.port()
        );
    }
    Ok((
        BoundSocket::bind(public, "--port")?,
        BoundSocket::bind(backoffice, "--backoffice-port")?,
    ))
}
