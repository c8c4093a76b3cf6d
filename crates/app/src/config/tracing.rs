//! `tracing.*`: spans for a collector.

use adapter_telemetry::{Header, NoHeader, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::values::{List, Secret, ServiceUrl};

/// The path at which a collector takes spans (OTLP/HTTP Request).
const PATH: &str = "/v1/traces";

/// `tracing.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracingConfig {
    /// Where spans are posted as OTLP over HTTP (protobuf), such as `http://collector:4318`; without a path, `/v1/traces` is meant.
    /// Without this key nobody traces.
    pub otlp_endpoint: Option<ServiceUrl>,
    /// What each request to the collector carries, such as `authorization=Bearer …`.
    pub headers: List<Secret>,
    /// The share of traces that are recorded, of those that begin here or with somebody who is not trusted.
    #[schemars(extend("x-kind" = "number", "x-range" = "from 0 to 1"))]
    pub sample_ratio: f64,
    /// What the collector knows the program by (`service.name`). Without it: `server.service_name`.
    pub service_name: Option<String>,
    /// Further attributes of the program, each `<name>=<value>`, such as `deployment.environment.name=production`.
    pub attributes: List<String>,
}

impl Default for TracingConfig {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            headers: List::default(),
            sample_ratio: 0.1,
            service_name: None,
            attributes: List::default(),
        }
    }
}

impl TracingConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.push(("tracing.sample_ratio", "must be from 0 to 1".to_owned()));
        }
        if let Err(error) = self.headers() {
            problems.push(("tracing.headers", format!("cannot be used: {error}")));
        }
        if self
            .service_name
            .as_ref()
            .is_some_and(|name| name.trim().is_empty())
        {
            problems.push(("tracing.service_name", "must not be empty".to_owned()));
        }
        if self.attributes().is_none() {
            let reason = "must be attributes such as deployment.environment.name=production".to_owned();
            problems.push(("tracing.attributes", reason));
        }
        problems
    }

    /// What is wrong with variables by which other programs are told where spans go: half of them honoured would be worse than
    /// none, so that none is, and nobody is to believe otherwise.
    pub(super) fn foreign<'a>(
        &self,
        variables: impl Iterator<Item = &'a str>,
    ) -> Option<(&'static str, String)> {
        self.otlp_endpoint.as_ref()?;
        let foreign = variables
            .filter(|name| name.starts_with("OTEL_"))
            .collect::<Vec<_>>();
        if foreign.is_empty() {
            return None;
        }
        let reason = format!(
            "cannot stand beside {} in the environment, which this program does not read: unset that, and use the keys of `tracing`",
            foreign.join(", ")
        );
        Some(("tracing.otlp_endpoint", reason))
    }

    /// Where spans go; none where nobody traces.
    pub fn settings(&self, service_name: &str) -> Option<Settings> {
        Some(Settings {
            endpoint: self.endpoint()?,
            headers: self.headers().unwrap_or_default(),
            sample_ratio: self.sample_ratio,
            service_name: self.service_name.as_deref().unwrap_or(service_name).to_owned(),
            service_version: env!("CARGO_PKG_VERSION"),
            attributes: self.attributes().unwrap_or_default(),
        })
    }

    fn endpoint(&self) -> Option<Url> {
        let ServiceUrl(mut url) = self.otlp_endpoint.clone()?;
        if url.path() == "/" {
            url.set_path(PATH);
        }
        Some(url)
    }

    fn headers(&self) -> Result<Vec<Header>, NoHeader> {
        self.headers
            .0
            .iter()
            .map(|header| Header::parse(&header.0))
            .collect()
    }

    fn attributes(&self) -> Option<Vec<(String, String)>> {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        self.attributes.0.iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> TracingConfig {
        TracingConfig {
            otlp_endpoint: Some(url.to_owned().try_into().unwrap()),
            ..TracingConfig::default()
        }
    }

    #[test]
    fn a_collector_takes_spans_at_its_path_unless_another_is_given() {
        let endpoint = |url| at(url).settings("seller-api").unwrap().endpoint.to_string();
        assert_eq!(
            endpoint("http://collector:4318"),
            "http://collector:4318/v1/traces"
        );
        assert_eq!(
            endpoint("https://spans.example/otlp/v1/traces"),
            "https://spans.example/otlp/v1/traces"
        );
    }

    #[test]
    fn nobody_traces_unless_it_is_wanted() {
        assert!(TracingConfig::default().settings("seller-api").is_none());
    }

    #[test]
    fn the_program_is_known_by_its_own_name_unless_another_is_given() {
        let mut config = at("http://collector:4318");
        assert_eq!(config.settings("shop-api").unwrap().service_name, "shop-api");
        config.service_name = Some("shop-api-eu".to_owned());
        assert_eq!(config.settings("shop-api").unwrap().service_name, "shop-api-eu");
    }

    #[test]
    fn variables_of_others_stop_the_start_once_spans_are_sent() {
        let variables = || ["PATH", "OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_HEADERS"].into_iter();
        assert_eq!(TracingConfig::default().foreign(variables()), None);
        let (key, reason) = at("http://collector:4318").foreign(variables()).unwrap();
        assert_eq!(key, "tracing.otlp_endpoint");
        assert!(
            reason.contains("OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS"),
            "{reason}"
        );
        assert_eq!(at("http://collector:4318").foreign(["PATH"].into_iter()), None);
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        let problems = |change: fn(&mut TracingConfig)| {
            let mut config = at("http://collector:4318");
            change(&mut config);
            config
                .problems()
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert!(problems(|_| {}).is_empty());
        assert_eq!(
            problems(|config| config.sample_ratio = 1.5),
            ["tracing.sample_ratio"]
        );
        assert_eq!(
            problems(|config| config.sample_ratio = f64::NAN),
            ["tracing.sample_ratio"]
        );
        assert_eq!(
            problems(|config| config.service_name = Some(" ".to_owned())),
            ["tracing.service_name"]
        );
        assert_eq!(
            problems(|config| config.attributes = List(vec!["a".to_owned()])),
            ["tracing.attributes"]
        );
        let header = |config: &mut TracingConfig| config.headers = List(vec!["hush".to_owned().into()]);
        assert_eq!(problems(header), ["tracing.headers"]);
    }
}
