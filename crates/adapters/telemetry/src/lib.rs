//! Hands spans of the program to a collector, by OpenTelemetry's protocol over HTTP (OTLP, protobuf).
//!
//! Spans wait in a bounded queue and are sent by a thread of its own, a batch a second. A collector that is away or slow costs
//! spans and nothing else: what finds no room in the queue is dropped, and no request waits for it.

mod exporting;
mod header;
mod sampling;
mod sending;

use std::time::Duration;

use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, TraceContextExt, TracerProvider as _},
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanLimits},
};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, filter_fn},
};
use url::Url;
use web::request_span::SPANS;

pub use self::header::{Header, NoHeader};
use self::{exporting::Watched, sampling::OwnShare, sending::Sender};

/// Spans that wait at most: some seconds of a busy process.
const QUEUE: usize = 16_384;
/// Spans that go together at most.
const BATCH: usize = 512;
/// How long a span waits at most, unless a batch is full before.
const EVERY: Duration = Duration::from_secs(1);

/// Where spans go, and which.
#[derive(Debug)]
pub struct Settings {
    /// Where they are posted.
    pub endpoint: Url,
    /// What every request to the collector carries beside them.
    pub headers: Vec<Header>,
    /// Which share of the traces that begin here is recorded, from 0 to 1.
    pub sample_ratio: f64,
    /// What the collector knows the program by: `service.name`.
    pub service_name: String,
    /// `service.version`.
    pub service_version: &'static str,
    /// Further attributes of the program, such as `deployment.environment.name`.
    pub attributes: Vec<(String, String)>,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No HTTP client came about.
    #[error("the client of the collector")]
    Client(#[source] reqwest::Error),
    /// The exporter refuses its settings.
    #[error("the exporter of spans")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
}

/// The way to the collector.
#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Opens the way; connects to nothing yet. Not to be called on a thread of a runtime.
    pub fn begin(settings: Settings) -> Result<Self, TelemetryError> {
        let sender = Sender::new(settings.headers).map_err(TelemetryError::Client)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(sending::WITHIN)
            .with_endpoint(settings.endpoint.clone())
            .build()
            .map_err(TelemetryError::Exporter)?;
        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let processor = BatchSpanProcessor::builder(Watched::new(exporter, settings.endpoint))
            .with_batch_config(queue)
            .build();
        let own = settings.attributes.into_iter();
        let own = own.map(|(name, value)| KeyValue::new(name, value));
        let resource = Resource::builder_empty()
            .with_attributes(own)
            .with_service_name(settings.service_name)
            .with_attribute(KeyValue::new("service.version", settings.service_version))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(OwnShare::of(settings.sample_ratio))
            .with_span_limits(SpanLimits::default())
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// Takes the spans that are meant for traces from the program's subscriber.
    pub fn layer(&self) -> impl Layer<Registry> + Send + Sync + use<> {
        let spans = filter_fn(|metadata| metadata.target() == SPANS);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("seller-api"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_filter(spans.with_max_level_hint(LevelFilter::INFO))
    }

    /// Sends what waits, for at most so long, and nothing more from then on. Blocks.
    pub fn end(&self, within: Duration) {
        // What could not be sent has been told by the exporter.
        drop(self.provider.shutdown_with_timeout(within));
    }
}

/// The span in which this is called, if there is one.
pub fn current() -> Option<SpanContext> {
    Context::map_current(|context| {
        let span = context.span();
        let context = span.span_context();
        context.is_valid().then(|| context.clone())
    })
}
