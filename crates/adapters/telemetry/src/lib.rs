//! Exports spans to a collector, over OTLP (HTTP, protobuf).
//!
//! Spans wait in a bounded queue; a separate thread sends a batch each second. A slow or missing collector
//! costs spans, never requests: when the queue is full, new spans are dropped. The library itself reads headers and
//! resource attributes from its standard variables.

mod exporter;

use std::time::Duration;

use kernel::SPANS;
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanLimits,
};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{Layer, Registry};
use url::Url;

use self::exporter::Exporter;

/// Enough for some seconds of a busy process.
const MAX_QUEUED: usize = 16_384;
const MAX_BATCH: usize = 512;
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Settings {
    /// The URL to which spans are posted.
    pub endpoint: Url,
    /// The sampled share, from 0 to 1, of the traces that start here.
    pub sample_ratio: f64,
    /// `service.name`.
    pub service_name: String,
    /// `service.version`.
    pub service_version: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("the collector's HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
    #[error("the span exporter could not be set up")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
}

#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Opens no connection yet. Panics if called on a runtime's thread.
    pub fn begin(settings: Settings) -> Result<Self, TelemetryError> {
        let exporter = Exporter::new(settings.endpoint)?;
        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED)
            .with_max_export_batch_size(MAX_BATCH)
            .with_scheduled_delay(EXPORT_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(queue)
            .build();
        // With those of `OTEL_RESOURCE_ATTRIBUTES`.
        let resource = Resource::builder()
            .with_service_name(settings.service_name)
            .with_attribute(KeyValue::new("service.version", settings.service_version))
            .build();
        let sampler = Sampler::TraceIdRatioBased(settings.sample_ratio);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_span_limits(SpanLimits::default())
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// The subscriber's layer that exports spans with the target `spans`.
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

    /// Exports the queued spans and stops. Blocks, at most for `within`.
    pub fn end(&self, within: Duration) {
        // The exporter has logged the error.
        drop(self.provider.shutdown_with_timeout(within));
    }
}

pub fn current() -> Option<SpanContext> {
    Context::map_current(|context| {
        let span = context.span();
        let context = span.span_context();
        context.is_valid().then(|| context.clone())
    })
}
