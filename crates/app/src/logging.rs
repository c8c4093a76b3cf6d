//! The log on stderr, one event a line, written by a thread of its own; and spans for a collector of traces beside it.

use std::{
    error::Error,
    io::{self, BufWriter, IsTerminal as _},
    panic,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use adapter_telemetry::Telemetry;
use anyhow::Context as _;
use tokio::task::spawn_blocking;
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    fmt::{self, FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};
use web::request_span::SPANS;

use crate::config::{Config, LogConfig, LogFormat};

/// What the HTTP libraries say too loudly: each thread at each start, and as an error each malformed request, of which anybody can send
/// any number.
const QUIET: [(&str, &str); 2] = [
    ("actix_server", "actix_server=warn"),
    ("actix_http", "actix_http::h1::dispatcher=off"),
];

/// What a pipe takes as a whole (`PIPE_BUF`): with no more at a time, lines of processes that share a pipe are never torn.
const PIPE_BUF: usize = 4096;
/// Lines in the queue of the writer. When it is full, logging blocks.
const WAITING_LINES: usize = 1024;

/// Writes the last lines when it is dropped.
static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);
/// The way to the collector of traces, from [`start_traced`] on.
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// Logs to stderr from now on, panics too. Only the first call has an effect.
pub(crate) fn start(config: &LogConfig) {
    let log = tracing_subscriber::registry()
        .with(filter(config))
        .with(layer(config));
    if log.try_init().is_ok() {
        log_panics();
    }
}

/// As [`start`], with spans for the collector that the configuration names; lines then name their spans. Not to be called on a
/// thread of a runtime.
pub(crate) fn start_traced(config: &Config) -> anyhow::Result<()> {
    let Some(settings) = config.tracing.settings(&config.server.service_name) else {
        start(&config.log);
        return Ok(());
    };
    let (endpoint, ratio) = (settings.endpoint.clone(), settings.sample_ratio);
    let telemetry = Telemetry::begin(settings).context("configuration section `tracing` cannot be used")?;
    let telemetry = TELEMETRY.get_or_init(|| telemetry);
    let spans = tracing_subscriber::registry().with(telemetry.layer());
    // The filter is the log's alone: it turns spans off.
    let log = spans.with(layer(&config.log).with_filter(filter(&config.log)));
    if log.try_init().is_ok() {
        log_panics();
    }
    tracing::info!(%endpoint, ratio, "requests are traced");
    Ok(())
}

/// Writes the lines of the log.
fn layer<S>(config: &LogConfig) -> Box<dyn tracing_subscriber::Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = fmt::layer().with_writer(writer());
    let format = config.format;
    match format {
        LogFormat::Json => layer
            .json()
            .map_event_format(|lines| WithIds { lines, format })
            .boxed(),
        LogFormat::Text => layer
            .with_ansi(io::stderr().is_terminal())
            .map_event_format(|lines| WithIds { lines, format })
            .boxed(),
    }
}

/// The buffer holds whole lines and is flushed when no line waits: one system call writes many lines where there are many.
fn writer() -> NonBlocking {
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(false)
        .buffered_lines_limit(WAITING_LINES)
        .thread_name("log")
        .finish(BufWriter::with_capacity(PIPE_BUF, io::stderr()));
    *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    writer
}

/// Text that cannot be parsed was refused with the configuration.
fn filter(config: &LogConfig) -> EnvFilter {
    EnvFilter::try_new(directives(&config.level)).unwrap_or_default()
}

/// The log ignores the spans of traces, and would otherwise keep each of them.
fn directives(level: &str) -> String {
    let unnamed = QUIET.iter().filter(|(name, _)| !level.contains(name));
    let quiet = unnamed.map(|(_, directive)| *directive);
    let all = quiet.chain([level]).collect::<Vec<_>>().join(",");
    format!("{all},{SPANS}=off")
}

fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, panic = message, "a thread panicked");
    }));
}

/// Writes the lines that still wait. For the end of the program.
pub(crate) fn finish() {
    drop(WRITER.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Sends the last spans, for at most so long, and none from then on.
pub(crate) async fn finish_spans(within: Duration) {
    if let Some(telemetry) = TELEMETRY.get()
        && spawn_blocking(move || telemetry.end(within)).await.is_err()
    {
        tracing::warn!("the last spans may be missing at the collector");
    }
}

/// The messages of an error and its causes in one line, without those that an outer message repeats.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// A format of lines that adds `otel_trace_id` and `otel_span_id` to those within a span.
struct WithIds<F> {
    lines: F,
    format: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for WithIds<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let Some(span) = adapter_telemetry::current() else {
            return self.lines.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.lines.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end_matches('\n');
        let (trace, span) = (span.trace_id(), span.span_id());
        match (self.format, line.strip_suffix('}')) {
            (LogFormat::Json, Some(open)) => {
                writeln!(
                    writer,
                    r#"{open},"otel_trace_id":"{trace}","otel_span_id":"{span}"}}"#
                )
            }
            _ => writeln!(writer, "{line} otel_trace_id={trace} otel_span_id={span}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::{Level, subscriber::with_default};

    use super::*;

    #[test]
    fn causes_are_named_once() {
        let error = anyhow::anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot look");
        assert_eq!(
            error_chain(error.as_ref()),
            "cannot look: cannot connect: refused"
        );
    }

    #[test]
    fn the_log_ignores_spans_of_traces_at_any_level() {
        let config = LogConfig {
            level: "trace,spans=trace".to_owned(),
            ..LogConfig::default()
        };
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter(&config))
            .with_writer(io::sink);
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
