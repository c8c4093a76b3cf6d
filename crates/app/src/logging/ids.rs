//! Lines of the log that name the span in which they were written.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::config::LogFormat;

/// A format of lines, with `otel_trace_id` and `otel_span_id` at the end of those that belong to a span. These have no colours.
pub(super) struct WithIds<F> {
    pub(super) lines: F,
    pub(super) format: LogFormat,
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
    ) -> fmt::Result {
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
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use adapter_telemetry::{Settings, Telemetry};
    use tracing::{info, info_span, subscriber::with_default};
    use tracing_subscriber::layer::SubscriberExt as _;
    use web::request_span::SPANS;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Traces that go nowhere.
    fn telemetry() -> Telemetry {
        Telemetry::begin(Settings {
            endpoint: "http://127.0.0.1:9/v1/traces".parse().unwrap(),
            headers: Vec::new(),
            sample_ratio: 0.0,
            service_name: "test".to_owned(),
            service_version: "0",
            attributes: Vec::new(),
        })
        .unwrap()
    }

    #[test]
    fn a_line_within_a_span_ends_with_the_spans_ids_and_any_other_is_as_it_was() {
        let kept = Kept::default();
        let (written, telemetry) = (kept.clone(), telemetry());
        let format = LogFormat::Text;
        let log = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || written.clone())
            .map_event_format(|lines| WithIds { lines, format });
        let mut ids = None;
        with_default(
            tracing_subscriber::registry().with(telemetry.layer()).with(log),
            || {
                info!("outside");
                info_span!(target: SPANS, "request").in_scope(|| {
                    ids = adapter_telemetry::current();
                    info!("inside");
                });
            },
        );
        let ids = ids.unwrap();
        let written = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines = written.lines().collect::<Vec<_>>();
        let (trace, span) = (ids.trace_id(), ids.span_id());
        let ending = format!("inside otel_trace_id={trace} otel_span_id={span}");
        assert!(
            lines[0].ends_with("outside") && lines[1].ends_with(&ending),
            "{written}"
        );
        assert_eq!(lines.len(), 2);
    }
}
