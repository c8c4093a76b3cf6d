//! The log on stderr, one event per line, written by a separate thread; and spans for a trace collector.

use std::io::{BufWriter, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, panic, thread};

use adapter_sealing::SystemClock;
use adapter_telemetry::Telemetry;
use anyhow::Context as _;
use chrono::SecondsFormat;
use kernel::{Clock as _, SPANS, error_chain};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use tokio::task::spawn_blocking;
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::config::{Config, LogConfig, LogFormat};

/// Events of libraries at too high a level: a line per thread at each start, an error per malformed request, and a
/// warning per packet with a wrong id, which anybody can send in any number.
const QUIET_TARGETS: [(&str, &str); 3] = [
    ("actix_server", "actix_server=warn"),
    ("actix_http", "actix_http::h1::dispatcher=off"),
    ("hickory_net", "hickory_net=error"),
];

/// The most that a pipe takes atomically (`PIPE_BUF`): larger writes could interleave with lines of other
/// processes on the same pipe.
const PIPE_BUF: usize = 4096;
/// Capacity of the writer's queue, in lines of some 500 bytes. While nobody reads the log, requests go on, and
/// what finds the queue full is lost.
const QUEUE_LINES: usize = 32 * 1024;
/// How long lines gather after each flush.
const COALESCE_DELAY: Duration = Duration::from_millis(2);

/// The writer's thread.
struct LogThread {
    /// When it is dropped, the remaining lines are written, within about a second.
    _guard: WorkerGuard,
    lost: ErrorCounter,
    /// How many of the lost ones are counted.
    counted: usize,
}

static WRITER: Mutex<Option<LogThread>> = Mutex::new(None);
/// Whether the program reports its own failure as a line of JSON.
static REPORTS_JSON: AtomicBool = AtomicBool::new(false);
/// The exporter to the trace collector, set by [`start_traced`].
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// Starts logging to stderr, including panics. Only the first call has an effect.
pub(crate) fn start(config: &LogConfig) {
    let log = tracing_subscriber::registry()
        .with(filter(config))
        .with(layer(config));
    if log.try_init().is_ok() {
        log_panics();
    }
}

/// As [`start`], and also exports spans to the configured collector; lines then include the ids of their
/// spans. Do not call it on a runtime's thread.
pub(crate) fn start_traced(config: &Config) -> anyhow::Result<()> {
    let Some(settings) = config.tracing.settings(&config.server.service_name) else {
        start(&config.log);
        return Ok(());
    };
    let (endpoint, ratio) = (settings.endpoint.clone(), settings.sample_ratio);
    let telemetry = Telemetry::begin(settings).context("configuration section `tracing` cannot be used")?;
    let telemetry = TELEMETRY.get_or_init(|| telemetry);
    let spans = tracing_subscriber::registry().with(telemetry.layer());
    // The filter applies only to the log: it disables spans.
    let log = spans.with(layer(&config.log).with_filter(filter(&config.log)));
    if log.try_init().is_ok() {
        log_panics();
    }
    tracing::info!(%endpoint, ratio, "requests are traced");
    Ok(())
}

/// The layer that writes the log.
fn layer<S>(config: &LogConfig) -> Box<dyn tracing_subscriber::Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    // Warnings and errors do not pass through the queue while the log is read: they are written even if the
    // process is killed.
    let direct = || LogWriter(io::stderr());
    let direct = direct.with_filter(|line| *line.level() <= Level::WARN && is_writable());
    let layer = fmt::layer().with_writer(direct.or_else(writer()));
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

/// The buffer holds whole lines and is flushed when no line waits, so under load one system call writes many
/// lines.
fn writer() -> NonBlocking {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUE_LINES)
        .thread_name("log")
        .finish(LogWriter(BufWriter::with_capacity(PIPE_BUF, io::stderr())));
    *WRITER.lock() = Some(LogThread {
        _guard: guard,
        lost: writer.error_counter(),
        counted: 0,
    });
    writer
}

/// Whether stderr takes a line at once: a pipe that nobody reads does not.
fn is_writable() -> bool {
    let stderr = io::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Counts the lines that have found the queue full since the last call.
pub(crate) fn count_lost() {
    if let Some(thread) = &mut *WRITER.lock() {
        let lost = thread.lost.dropped_lines();
        metrics::counter!("log_lines_lost_total")
            .increment(u64::try_from(lost.saturating_sub(thread.counted)).unwrap_or(u64::MAX));
        thread.counted = lost;
    }
}

/// Counts lines that cannot be written; one that a failed flush leaves in the buffer is written later. Pauses
/// after each flush, so that lines gather: waking the thread for each line cost 7 % of the processor time under
/// load. The direct writer is never flushed.
struct LogWriter<W>(W);

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let count = |_: &io::Error| metrics::counter!("log_lines_lost_total").increment(1);
        self.0.write(line).inspect_err(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(COALESCE_DELAY);
        Ok(())
    }
}

/// An invalid filter is refused when the configuration is checked.
fn filter(config: &LogConfig) -> EnvFilter {
    EnvFilter::try_new(directives(&config.level)).unwrap_or_default()
}

/// The log does not use the spans of traces; without this filter it would store each of them.
fn directives(level: &str) -> String {
    let unnamed = QUIET_TARGETS.iter().filter(|(name, _)| !level.contains(name));
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

/// Sets the format in which [`report_failure`] reports: that of the log of a long-running command.
pub(crate) fn report_failures_as(format: LogFormat) {
    REPORTS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Writes to stderr why the program ends, whatever the log's level.
pub(crate) fn report_failure(error: &anyhow::Error) {
    let message = format!("seller-api: {}", error_chain(error.as_ref()));
    let line = if REPORTS_JSON.load(Ordering::Relaxed) {
        // A line like those of the log.
        let timestamp = SystemClock.now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let fields = json!({ "message": message });
        json!({ "timestamp": timestamp, "level": "ERROR", "fields": fields, "target": "seller_api" })
            .to_string()
    } else {
        message
    };
    drop(writeln!(io::stderr(), "{line}"));
}

/// Writes the remaining lines, within about a second. Call it at the end of the program.
pub(crate) fn finish() {
    drop(WRITER.lock().take());
}

/// Exports the remaining spans, for at most this long, and stops the export.
pub(crate) async fn finish_spans(within: Duration) {
    if let Some(telemetry) = TELEMETRY.get()
        && spawn_blocking(move || telemetry.end(within)).await.is_err()
    {
        tracing::warn!("the last spans may be missing at the collector");
    }
}

/// A line format that adds `otel_trace_id` and `otel_span_id` to lines within a span.
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
    fn libraries_are_quiet_unless_they_are_named() {
        let quiet = "actix_server=warn,actix_http::h1::dispatcher=off,hickory_net=error,info,spans=off";
        assert_eq!(directives("info"), quiet);
        let named = "debug,actix_server=info,actix_http=debug,hickory_net=debug";
        assert_eq!(directives(named), format!("{named},spans=off"));
        assert!(EnvFilter::try_new(quiet).is_ok());
    }
}
