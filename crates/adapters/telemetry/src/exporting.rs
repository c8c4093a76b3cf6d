//! The exporter as it is seen from outside: what went and what was lost is counted, and trouble is told when it begins and
//! when it ends.

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use url::Url;

/// An exporter that is watched.
#[derive(Debug)]
pub(crate) struct Watched<E = Otlp> {
    exporter: E,
    endpoint: Url,
    in_trouble: AtomicBool,
}

impl<E> Watched<E> {
    /// The endpoint is told of; it has no user and no password in it.
    pub(crate) fn new(exporter: E, endpoint: Url) -> Self {
        Self {
            exporter,
            endpoint,
            in_trouble: AtomicBool::new(false),
        }
    }

    fn tell(&self, outcome: &OTelSdkResult) {
        let was_in_trouble = self.in_trouble.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Err(error) if !was_in_trouble => {
                let cause = error
                    .source()
                    .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
                tracing::warn!(
                    endpoint = %self.endpoint,
                    cause,
                    "spans cannot be handed to the collector, and are lost until they can"
                );
            }
            Ok(()) if was_in_trouble => {
                tracing::info!(endpoint = %self.endpoint, "the collector takes spans again");
            }
            _ => {}
        }
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or_default();
        let outcome = self.exporter.export(batch).await;
        let fate = if outcome.is_ok() { "sent" } else { "lost" };
        metrics::counter!("trace_spans_total", "fate" => fate).increment(spans);
        self.tell(&outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
