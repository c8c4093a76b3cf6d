//! The exporter: OTLP over HTTP, with a metric of exported spans and a log line when exports start or stop
//! failing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::TelemetryError;

/// Timeout of a batch, including the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Exporter {
    otlp: OtlpExporter,
    endpoint: Url,
    is_failing: AtomicBool,
}

impl Exporter {
    pub(crate) fn new(endpoint: Url) -> Result<Self, TelemetryError> {
        // Fails if a provider is already installed; that one is used then.
        drop(rustls::crypto::ring::default_provider().install_default());
        // A blocking client, since the SDK exports from a thread without a runtime.
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .build()
            .map_err(TelemetryError::Client)?;
        let otlp = OtlpExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(TIMEOUT)
            .with_endpoint(endpoint.clone())
            .build()
            .map_err(TelemetryError::Exporter)?;
        Ok(Self {
            otlp,
            endpoint,
            is_failing: AtomicBool::new(false),
        })
    }

    fn log_change(&self, outcome: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Err(error) if !was_failing => {
                tracing::warn!(
                    endpoint = %self.endpoint,
                    cause = %error,
                    "spans cannot be exported to the collector and are dropped"
                );
            }
            Ok(()) if was_failing => {
                tracing::info!(endpoint = %self.endpoint, "spans are exported to the collector again");
            }
            _ => {}
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or_default();
        let outcome = self.otlp.export(batch).await;
        let result = if outcome.is_ok() { "sent" } else { "lost" };
        metrics::counter!("trace_spans_exported_total", "outcome" => result).increment(spans);
        self.log_change(&outcome);
        outcome
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
