//! The log: events of the program on stderr, one a line.

mod lines;

use std::{
    io::{self, Stderr},
    panic,
    sync::OnceLock,
};

use tracing_subscriber::{EnvFilter, fmt};

use self::lines::Lines;
use crate::config::{LogConfig, LogFormat};

/// Where everything that is logged goes, from the first [`start`] on.
static LINES: OnceLock<Lines<Stderr>> = OnceLock::new();

/// What the HTTP libraries say too loudly, by the part of them that says it: each thread at each start, and as an error each
/// request that is none, of which anybody can send any number. Those are counted (`http_connections_cut_total`).
const QUIET: [(&str, &str); 2] = [
    ("actix_server", "actix_server=warn"),
    ("actix_http", "actix_http::h1::dispatcher=off"),
];

/// Sends all that is logged to stderr from now on, panics too. Only the first call has an effect.
pub(crate) fn start(config: &LogConfig) {
    // Text that cannot be parsed was refused with the configuration.
    let filter = EnvFilter::try_new(directives(&config.level)).unwrap_or_default();
    let log = fmt()
        .with_env_filter(filter)
        .with_writer(LINES.get_or_init(|| Lines::to(io::stderr())).clone());
    let started = match config.format {
        LogFormat::Json => log.json().try_init(),
        LogFormat::Text => log
            .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
            .try_init(),
    };
    if started.is_ok() {
        panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("no message");
            tracing::error!(place, panic = message, "a thread panicked");
        }));
    }
}

/// Writes what still waits to be written. For the end of the program: its last lines are not to be lost.
pub(crate) fn finish() {
    if let Some(lines) = LINES.get() {
        // There is nobody left to be told.
        drop(lines.write_out());
    }
}

fn directives(level: &str) -> String {
    let unnamed = QUIET.iter().filter(|(name, _)| !level.contains(name));
    let quiet = unnamed.map(|(_, directive)| *directive);
    quiet.chain([level]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_libraries_are_quiet_unless_they_are_named() {
        let quiet = "actix_server=warn,actix_http::h1::dispatcher=off,info";
        assert_eq!(directives("info"), quiet);
        assert_eq!(
            directives("debug,actix_server=info,actix_http=debug"),
            "debug,actix_server=info,actix_http=debug"
        );
        let parsed = EnvFilter::new(quiet).to_string();
        assert!(parsed.contains("actix_http::h1::dispatcher=off"), "{parsed}");
    }
}
