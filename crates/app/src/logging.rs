//! The log: events of the program on stderr, one a line.

mod ids;
mod lines;

use std::{
    io::{self, Stderr},
    panic,
    sync::OnceLock,
};

use adapter_telemetry::Telemetry;
use tracing_subscriber::{
    EnvFilter, Layer as _, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};
use web::request_span::SPANS;

use self::{ids::WithIds, lines::Lines};
use crate::config::{LogConfig, LogFormat};

/// Where everything that is logged goes, from the first [`start`] on.
static LINES: OnceLock<Lines<Stderr>> = OnceLock::new();

/// What the HTTP libraries say too loudly, by the part of them that says it: each thread at each start, and as an error each
/// malformed request, of which anybody can send any number.
const QUIET: [(&str, &str); 2] = [
    ("actix_server", "actix_server=warn"),
    ("actix_http", "actix_http::h1::dispatcher=off"),
];

/// Sends all that is logged to stderr from now on, panics too. Only the first call has an effect.
pub(crate) fn start(config: &LogConfig) {
    let log = fmt().with_env_filter(filter(config)).with_writer(lines());
    let started = match config.format {
        LogFormat::Json => log.json().try_init(),
        LogFormat::Text => log.with_ansi(for_people()).try_init(),
    };
    if started.is_ok() {
        log_panics();
    }
}

/// As [`start`], with spans for a collector beside the log, whose lines then name their spans. The log's own filter is asked
/// by the log alone.
pub(crate) fn start_traced(config: &LogConfig, telemetry: &Telemetry) {
    let format = config.format;
    let log = fmt::layer().with_writer(lines()).with_ansi(false);
    let spans = tracing_subscriber::registry().with(telemetry.layer());
    let started = match format {
        LogFormat::Json => {
            let log = log.json().map_event_format(|lines| WithIds { lines, format });
            spans.with(log.with_filter(filter(config))).try_init()
        }
        LogFormat::Text => {
            let log = log.with_ansi(for_people());
            let log = log.map_event_format(|lines| WithIds { lines, format });
            spans.with(log.with_filter(filter(config))).try_init()
        }
    };
    if started.is_ok() {
        log_panics();
    }
}

/// Text that cannot be parsed was refused with the configuration.
fn filter(config: &LogConfig) -> EnvFilter {
    EnvFilter::try_new(directives(&config.level)).unwrap_or_default()
}

fn lines() -> Lines<Stderr> {
    LINES.get_or_init(|| Lines::to(io::stderr())).clone()
}

fn for_people() -> bool {
    io::IsTerminal::is_terminal(&io::stderr())
}

fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, panic = message, "a thread panicked");
    }));
}

/// Writes what still waits to be written. For the end of the program: its last lines are not to be lost.
pub(crate) fn finish() {
    if let Some(lines) = LINES.get() {
        // There is nobody left to be told.
        drop(lines.write_out());
    }
}

/// Spans for traces are nothing to the log, which would otherwise keep each of them.
fn directives(level: &str) -> String {
    let unnamed = QUIET.iter().filter(|(name, _)| !level.contains(name));
    let quiet = unnamed.map(|(_, directive)| *directive);
    let all = quiet.chain([level]).collect::<Vec<_>>().join(",");
    format!("{all},{SPANS}=off")
}

#[cfg(test)]
mod tests {
    use tracing::{Level, subscriber::with_default};

    use super::*;

    #[test]
    fn to_the_log_spans_of_traces_are_nothing_however_much_is_asked_of_it() {
        let config = LogConfig {
            level: "trace,spans=trace".to_owned(),
            ..LogConfig::default()
        };
        let log = fmt().with_env_filter(filter(&config)).with_writer(io::sink);
        with_default(log.finish(), || {
            assert!(tracing::enabled!(target: "access", Level::TRACE));
            assert!(tracing::info_span!(target: SPANS, "request").is_disabled());
        });
    }

    #[test]
    fn the_http_libraries_are_quiet_unless_they_are_named() {
        let quiet = "actix_server=warn,actix_http::h1::dispatcher=off,info,spans=off";
        assert_eq!(directives("info"), quiet);
        assert_eq!(
            directives("debug,actix_server=info,actix_http=debug"),
            "debug,actix_server=info,actix_http=debug,spans=off"
        );
        let parsed = EnvFilter::new(quiet).to_string();
        assert!(parsed.contains("actix_http::h1::dispatcher=off"), "{parsed}");
    }
}
