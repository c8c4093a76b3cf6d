//! Exports spans to a collector, over OTLP (HTTP, protobuf).
//!
//! Spans wait in a bounded queue; a separate thread sends a batch each second. A slow or missing collector
//! costs spans, never requests: when the queue is full, new spans are dropped.

mod exporter;

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kernel::SPANS;
use opentelemetry::trace::{Link, SpanContext, SpanKind, TraceContextExt, TraceId, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SamplingResult, SdkTracerProvider, ShouldSample,
    SpanLimits,
};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{Layer, Registry};
use url::Url;
use web::traceparent::UntrustedParent;

use self::exporter::Exporter;
pub use self::exporter::{Header, NoHeader};

/// Enough for some seconds of a busy process.
const MAX_QUEUED: usize = 16_384;
const MAX_BATCH: usize = 512;
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Settings {
    /// The URL to which spans are posted.
    pub endpoint: Url,
    /// Headers of requests to the collector.
    pub headers: Vec<Header>,
    /// The sampled share, from 0 to 1, of the traces that start here or come from an untrusted caller.
    pub sample_ratio: f64,
    /// `service.name`.
    pub service_name: String,
    /// `service.version`.
    pub service_version: &'static str,
    /// Further resource attributes, such as `deployment.environment.name`.
    pub attributes: Vec<(String, String)>,
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
        let exporter = Exporter::new(settings.endpoint, settings.headers)?;
        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED)
            .with_max_export_batch_size(MAX_BATCH)
            .with_scheduled_delay(EXPORT_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(queue)
            .build();
        let attributes = settings.attributes.into_iter();
        let attributes = attributes.map(|(name, value)| KeyValue::new(name, value));
        let resource = Resource::builder_empty()
            .with_attributes(attributes)
            .with_service_name(settings.service_name)
            .with_attribute(KeyValue::new("service.version", settings.service_version))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(TrustSampler::new(settings.sample_ratio))
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

/// Follows a trusted caller's decision, and samples a share of all other traces.
///
/// An untrusted caller must not influence the decision, neither by the sampled flag nor by the choice of the
/// trace id. So the SDK's ratio sampler gets a hash of the id with a random key.
#[derive(Clone, Debug)]
struct TrustSampler {
    sampler: Sampler,
    key: RandomState,
}

impl TrustSampler {
    fn new(ratio: f64) -> Self {
        Self {
            sampler: Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))),
            key: RandomState::new(),
        }
    }
}

impl ShouldSample for TrustSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let is_trusted = |context: &&Context| {
            let is_untrusted_caller =
                context.span().span_context().is_remote() && context.get::<UntrustedParent>().is_some();
            !is_untrusted_caller
        };
        let hash = TraceId::from(u128::from(self.key.hash_one(trace.to_bytes())));
        self.sampler
            .should_sample(parent.filter(is_trusted), hash, name, kind, attributes, links)
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceState};
    use opentelemetry_sdk::trace::SamplingDecision;

    use super::*;

    fn is_sampled(ratio: f64, parent: &Context, trace: u128) -> bool {
        let sampler = TrustSampler::new(ratio);
        let result = sampler.should_sample(
            Some(parent),
            TraceId::from(trace),
            "",
            &SpanKind::Server,
            &[],
            &[],
        );
        result.decision == SamplingDecision::RecordAndSample
    }

    fn under(flags: TraceFlags, is_remote: bool) -> Context {
        let span = SpanId::from_bytes([7; 8]);
        let parent = SpanContext::new(TraceId::from(1), span, flags, is_remote, TraceState::NONE);
        Context::new().with_remote_span_context(parent)
    }

    #[test]
    fn a_share_of_own_traces_is_sampled() {
        let sampled = |ratio| {
            let traces = 1..=10_000;
            traces.filter(|n| is_sampled(ratio, &Context::new(), *n)).count()
        };
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 10_000));
        assert!((2_000..3_000).contains(&sampled(0.25)));
    }

    #[test]
    fn only_a_trusted_parent_decides() {
        let (sampled, unsampled) = (TraceFlags::SAMPLED, TraceFlags::NOT_SAMPLED);
        for is_remote in [true, false] {
            assert!(is_sampled(0.0, &under(sampled, is_remote), 1));
            assert!(!is_sampled(1.0, &under(unsampled, is_remote), 1));
        }
        let untrusted = |flags| under(flags, true).with_value(UntrustedParent);
        assert!(!is_sampled(0.0, &untrusted(sampled), 1));
        assert!(is_sampled(1.0, &untrusted(unsampled), 1));
        // Each process has a different key, so only some processes sample the same id.
        let count = (0..64)
            .filter(|_| is_sampled(0.5, &untrusted(sampled), 1))
            .count();
        assert!((1..64).contains(&count));
        // Local child spans follow their parent.
        let child = under(sampled, false).with_value(UntrustedParent);
        assert!(is_sampled(0.0, &child, 1));
    }
}
