//! The command line.

mod admin;
mod commands;
mod completions;
mod config;
mod exit;
mod import;
mod metrics;
mod migrate;
mod openapi;
mod output;
mod sandbox;
mod schema;
mod serve;
mod values;
mod worker;

use std::{future::Future, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::{exit::Exit, output::Unread};
use crate::config::{Layer, Loaded, Sources};

pub(crate) use output::print;

/// The API of an online marketplace's sellers.
///
/// Configuration: defaults, over them the TOML file given with --config, over it environment variables such as
/// `SELLER_API__SERVER__BIND` (`DATABASE_URL` is honoured too), over all the flags. `seller-api config` shows the result.
#[derive(Debug, Parser)]
#[command(name = "seller-api", version, max_term_width = 100)]
struct Cli {
    /// A TOML file with configuration
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  seller-api sandbox                          try everything out, with a PostgreSQL of its own
  DATABASE_URL=postgres://… seller-api migrate
  DATABASE_URL=postgres://… SELLER_API__KEYS__SEALING=… seller-api serve
  seller-api serve --config /etc/seller-api.toml";

#[derive(Debug, Subcommand)]
enum Command {
    Sandbox(sandbox::Args),
    Serve(serve::Args),
    Worker(worker::Args),
    Migrate(migrate::Args),
    Config(config::Args),
    Metrics(metrics::Args),
    Openapi(openapi::Args),
    Commands(commands::Args),
    Completions(completions::Args),
    Import(import::Args),
    Admin(admin::Args),
}

/// Runs the command that the process was started with.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::from_arg_matches(&definition().get_matches()).unwrap_or_else(|error| error.exit());
    cli.run().unwrap_or_else(|error| {
        if error.downcast_ref::<Unread>().is_some_and(Unread::is_enough) {
            return ExitCode::SUCCESS;
        }
        output::complain(&error);
        let exit = Exit::of(&error);
        if exit == Exit::Unknown {
            output::note("it may be done and it may not: look whether it is before you repeat it");
        }
        exit.into()
    })
}

/// The commands and their flags.
fn definition() -> clap::Command {
    Cli::command().after_long_help(format!("{EXAMPLES}\n\n{}", exit::table()))
}

impl Cli {
    fn run(self) -> anyhow::Result<ExitCode> {
        let sources = Sources::of_process(self.config)?;
        match self.command {
            Command::Sandbox(args) => args.run(sources),
            Command::Serve(args) => args.run(sources),
            Command::Worker(args) => args.run(sources),
            Command::Migrate(args) => args.run(&sources.load()?),
            Command::Config(args) => args.run(sources),
            Command::Metrics(args) => args.run(),
            Command::Commands(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Openapi(args) => args.run(&sources.load()?),
            Command::Import(args) => args.run(&sources.load()?),
            Command::Admin(args) => args.run(sources),
        }
    }
}

/// Flags that set configuration keys.
fn with_flags<const N: usize>(sources: Sources, flags: [(&str, &str, Option<String>); N]) -> Sources {
    let layers = flags.map(|(flag, key, value)| value.map(|value| Layer::flag(flag, key, value)));
    layers.into_iter().fold(sources, Sources::with)
}

/// Runs a command that waits, on a runtime of its own. What it leaves behind when it is done is dropped.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// Logging for commands that are over soon: warnings, unless a level was asked for.
fn quiet(loaded: &Loaded) -> crate::config::LogConfig {
    let mut log = loaded.config.log.clone();
    if loaded.source("log.level").is_none() {
        "warn".clone_into(&mut log.level);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_examples() {
        fn walk(command: &mut clap::Command, path: &str) {
            let help = command.render_long_help().to_string();
            if command.has_subcommands() {
                for inner in command
                    .get_subcommands_mut()
                    .filter(|inner| inner.get_name() != "help")
                {
                    let path = format!("{path} {}", inner.get_name());
                    walk(inner, &path);
                }
            } else {
                assert!(help.contains("Examples:\n"), "{path}:\n{help}");
                assert!(
                    help.contains(&format!("  {path}")) || help.contains(&format!("{path} ")),
                    "{path}:\n{help}"
                );
            }
        }
        let mut command = definition();
        command.build();
        walk(&mut command, "seller-api");
    }
}
