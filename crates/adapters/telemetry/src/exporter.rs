//! The exporter: OTLP over HTTP, with a metric of exported spans and a log line when exports start or stop
//! failing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use reqwest::blocking::Client;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::TelemetryError;

/// Timeout of a batch, including the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A header for the collector, such as an API key. `Debug` hides its value.
#[derive(Debug, Clone)]
pub struct Header {
    name: HeaderName,
    value: HeaderValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `<name>=<value>` with a header that HTTP itself does not use")]
pub struct NoHeader;

impl Header {
    /// Parses `<name>=<value>`.
    pub fn parse(text: &SecretString) -> Result<Self, NoHeader> {
        let (name, value) = text.expose_secret().split_once('=').ok_or(NoHeader)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| NoHeader)?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| NoHeader)?;
        value.set_sensitive(true);
        if value.is_empty() || [CONTENT_TYPE, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].contains(&name) {
            return Err(NoHeader);
        }
        Ok(Self { name, value })
    }
}

#[derive(Debug)]
pub(crate) struct Exporter {
    otlp: OtlpExporter,
    endpoint: Url,
    is_failing: AtomicBool,
}

impl Exporter {
    pub(crate) fn new(endpoint: Url, headers: Vec<Header>) -> Result<Self, TelemetryError> {
        // Fails if a provider is already installed; that one is used then.
        drop(rustls::crypto::ring::default_provider().install_default());
        let headers = headers.into_iter().map(|header| (header.name, header.value));
        // A blocking client, since the SDK exports from a thread without a runtime.
        let client = Client::builder()
            .default_headers(headers.collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_its_value_hidden() {
        let header = Header::parse(&"Authorization=Basic aHVzaA==".into()).unwrap();
        let (name, value) = (header.name.as_str(), header.value.to_str().unwrap());
        assert_eq!((name, value), ("authorization", "Basic aHVzaA=="));
        assert!(!format!("{header:?} {:?}", header.value).contains("aHVzaA"));
        for text in [
            "",
            "x-key",
            "x-key=",
            "=value",
            "x key=value",
            "x-key=two\nlines",
            "Content-Type=text/plain",
        ] {
            assert_eq!(Header::parse(&text.into()).unwrap_err(), NoHeader, "{text}");
        }
    }
}
