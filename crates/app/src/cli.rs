//! The command line: all commands except `admin`, with their flags.

mod import;
mod migrate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::command::{Exit, PrintError, block_on, load_for_command, note, print};
use crate::config::{Layer, Loaded, Sources, reference};
use crate::external_services::{docs_url, mailer, refuse_unfit};
use crate::tls::Tls;
use crate::{admin, logging, prometheus, sandbox, serve};

/// The API of an online marketplace's sellers.
///
/// Configuration, later sources win: defaults, the TOML file of --config (or `SELLER_API_CONFIG`),
/// environment variables such as `SELLER_API__SERVER__BIND` or `DATABASE_URL`, flags. `seller-api config`
/// shows the result.
#[derive(Debug, Parser)]
#[command(name = "seller-api", version, max_term_width = 100)]
struct Cli {
    /// A TOML file with configuration
    #[arg(long, global = true, env = "SELLER_API_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try everything out: the whole service with sample data
    ///
    /// Starts a private PostgreSQL in the data directory, from the installed server programs, migrates it,
    /// seeds it once, and serves. Prints calls to copy, and writes all credentials to credentials.json in the
    /// data directory. The next start continues with the data. Mails are files in its folder mail. Carriers
    /// are simulated: the tracking number decides their answer (DELIVERED, TRANSIT, LATER, TIMEOUT, ERROR in
    /// it). With `DATABASE_URL` set, that database is used instead, if it is empty or a sandbox's already.
    /// All configuration except TLS, mail servers and carriers applies. Ctrl-C ends it and its PostgreSQL.
    Sandbox {
        #[command(flatten)]
        options: sandbox::Options,
        /// Which receivers webhooks may go to: those of the public internet by https, also those on this
        /// machine, or any [default: local]
        #[arg(long, value_parser = ["local", "public", "any"])]
        webhook_addresses: Option<String>,
    },
    /// Serve the public API and the back office
    ///
    /// Needs a database (`DATABASE_URL` or `database.url`) and a key (`keys.sealing`). Starts in any order:
    /// while the database is unreachable or its schema is missing or older, it listens, answers 503 at the
    /// back office's /readyz, and waits. On SIGTERM or SIGINT it is no longer ready, drains clients
    /// (`server.drain`), then accepts no new connections, finishes requests in flight
    /// (`server.shutdown_timeout`) and exits with 0; a second signal ends it at once. The log goes to stderr,
    /// as text or JSON (`log.format`).
    ///
    /// The background workers (webhooks, mails, tracking, cleaning) run in the same process, or with
    /// --workers none in separate ones (`seller-api worker`).
    Serve {
        /// Where /v1 and /oauth listen; port 0 takes a free one [default: 127.0.0.1:8080]
        #[arg(long, value_name = "ADDRESS:PORT")]
        bind: Option<String>,
        /// Where the back office listens; port 0 takes a free one [default: 127.0.0.1:8081]
        #[arg(long, value_name = "ADDRESS:PORT")]
        backoffice_bind: Option<String>,
        /// Which background workers run in this process; with none, run `seller-api worker` [default: all]
        #[arg(long, value_parser = ["none", "all"])]
        workers: Option<String>,
    },
    /// Run the background workers alone
    ///
    /// Delivers webhooks, sends mails, tracks parcels, and deletes expired data, as `serve` does without
    /// --workers none. Run as many as needed on one database; work is leased, so that none is done twice.
    /// Needs the same configuration as `serve`. /healthz, /readyz and /metrics answer at `worker.bind`.
    /// Starts in any order, and ends on SIGTERM or SIGINT as `serve` does.
    Worker {
        /// Where /healthz, /readyz and /metrics answer; port 0 takes a free one [default: 127.0.0.1:8082]
        #[arg(long, value_name = "ADDRESS:PORT")]
        bind: Option<String>,
    },
    /// Bring the database's schema up to date
    ///
    /// Applies the missing migrations under a lock: two at once are harmless. Refuses a schema that needs a
    /// newer program. Uses `database.direct_url` if set, to bypass a pooler, else the database's URL; needs
    /// no `keys.sealing`. A running `serve` of the version before keeps working. Interrupted, it may be run
    /// again. Each is reported as it begins, an index being built every two seconds.
    Migrate(migrate::Options),
    /// Show the effective configuration, or explain its keys
    ///
    /// Without a command, prints every key with its effective value as TOML, and its source unless it is the
    /// default. Secrets are hidden. Fails, as every command does, on an unknown key or an impossible value,
    /// and as `serve` does on certificates that cannot be served and on a `mail.folder` that exists and
    /// cannot be written. Only the commands that need a key, such as `database.url`, report that it is
    /// missing.
    #[command(args_conflicts_with_subcommands = true)]
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Explain the metrics
    ///
    /// Prints every metric with its kind, its labels and their values, as Markdown.
    Metrics,
    /// Print the OpenAPI document of the public API
    ///
    /// It is the OpenAPI 3.1 document that is served at `/openapi.json`. Its server is `server.public_url`,
    /// or else the address of `server.bind`.
    Openapi,
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Import data
    #[command(subcommand)]
    Import(import::Command),
    /// Manage tokens, webhooks and keys, and read the audit log
    ///
    /// Works on the database and needs no running `serve`: `database.url` (or `DATABASE_URL`) is enough,
    /// except for `keys status` and `keys reseal`, which need `keys.sealing` too, and `keys generate`, which
    /// needs nothing. Changes are in the audit log, and hold for the next request to every process. The back
    /// office manages sellers and applications.
    Admin(admin::Options),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Explain every key
    ///
    /// Prints every key with its type, default, range, environment variable, meaning and the commands that
    /// read it, as Markdown. Needs no configuration.
    Reference,
}

/// Runs the command on the process's command line.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::from_arg_matches(&definition().get_matches()).unwrap_or_else(|error| error.exit());
    cli.run().unwrap_or_else(|error| {
        if error
            .downcast_ref::<PrintError>()
            .is_some_and(PrintError::is_broken_pipe)
        {
            return ExitCode::SUCCESS;
        }
        logging::report_failure(&error);
        let exit = Exit::of(&error);
        if exit == Exit::Unknown {
            note("check before you repeat it");
        }
        exit.into()
    })
}

/// The examples of each command, below a line with its name; the first one also lists the exit codes.
const HELP: &str = include_str!("cli/help.txt");

fn definition() -> clap::Command {
    with_examples(Cli::command(), "seller-api")
}

/// The command `name` and its subcommands, with examples at the end of their help.
fn with_examples(command: clap::Command, name: &str) -> clap::Command {
    let command = command.mut_subcommands(|inner| {
        let name = format!("{name} {}", inner.get_name());
        with_examples(inner, &name)
    });
    let Some((_, text)) = HELP.split_once(&format!("# {name}\n")) else {
        return command;
    };
    let text = text.split_once("\n# ").map_or(text, |(text, _)| text);
    command.after_long_help(format!("Examples:\n{}", text.trim_end()))
}

impl Cli {
    fn run(self) -> anyhow::Result<ExitCode> {
        let sources = Sources::of_process(self.config)?;
        match self.command {
            Command::Sandbox {
                options,
                webhook_addresses,
            } => {
                let flags = [("--webhook-addresses", "webhooks.addresses", webhook_addresses)];
                return block_on(sandbox::run(load_for_service(sources, flags)?, options));
            }
            Command::Serve {
                bind,
                backoffice_bind,
                workers,
            } => {
                let flags = [
                    ("--bind", "server.bind", bind),
                    ("--backoffice-bind", "server.backoffice_bind", backoffice_bind),
                    ("--workers", "server.workers", workers),
                ];
                return block_on(serve::serve(&load_for_service(sources, flags)?));
            }
            Command::Worker { bind } => {
                return block_on(serve::work(&load_for_service(
                    sources,
                    [("--bind", "worker.bind", bind)],
                )?));
            }
            Command::Import(command) => return command.run(&load_for_command(sources)?),
            Command::Migrate(options) => block_on(migrate::migrate(&load_for_command(sources)?, &options))?,
            Command::Admin(command) => command.run(sources)?,
            Command::Config { command: None } => {
                let loaded = sources.load()?;
                refuse_unfit(&loaded)?;
                for warning in loaded.warnings() {
                    note(format_args!("warning: {warning}"));
                }
                block_on(Tls::load(&loaded.config.server))?;
                // `serve` creates the folder, as its own user.
                let folder = loaded.config.mail.folder.as_deref();
                if folder.is_some_and(Path::exists) {
                    mailer(&loaded.config)?;
                }
                print(loaded.to_string().trim_end())?;
            }
            Command::Config {
                command: Some(ConfigCommand::Reference),
            } => print(reference::markdown()?.trim_end())?,
            Command::Metrics => print(prometheus::page()?.trim_end())?,
            Command::Openapi => {
                let config = sources.load()?.config;
                let public_url = config.server.public_url_at(config.server.bind.0);
                let openapi =
                    adapter_http::openapi(&config.server.name, &public_url, &docs_url(&config, &public_url));
                print(format!("{openapi:#}"))?;
            }
            Command::Completions { shell } => print(completions(shell)?.trim_end())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Loads the configuration of a long-running command, including flags that set keys, and starts logging and
/// tracing.
fn load_for_service<const N: usize>(
    mut sources: Sources,
    flags: [(&str, &str, Option<String>); N],
) -> anyhow::Result<Loaded> {
    for (flag, key, value) in flags {
        sources
            .flags
            .extend(value.map(|value| Layer::flag(flag, key, value)));
    }
    logging::report_failures_as(sources.log_format());
    let loaded = sources.load()?;
    logging::start_traced(&loaded.config)?;
    for warning in loaded.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(loaded)
}

fn completions(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "seller-api", &mut script);
    let script = String::from_utf8(script).context("the completion script is not UTF-8")?;
    // The bash generator spells commands with a hyphen in two different ways, which then do not match.
    Ok(script.replace("__subcmd__", "__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_help_with_examples() {
        fn walk(command: &mut clap::Command, path: &str) {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n"), "{path}:\n{help}");
            let shows_itself = help.contains(&format!("  {path}")) || help.contains(&format!("{path} "));
            assert!(shows_itself, "{path}:\n{help}");
            let inner = command.get_subcommands_mut();
            for inner in inner.filter(|inner| inner.get_name() != "help") {
                let path = format!("{path} {}", inner.get_name());
                walk(inner, &path);
            }
        }
        let mut command = definition();
        command.clone().debug_assert();
        command.build();
        walk(&mut command, "seller-api");
    }
}
