//! `log.*`: what is logged, and how it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// `log.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// How events are written to stderr.
    pub format: LogFormat,
    /// The least level, or a list of directives such as `info,usecases=debug` (tracing's `EnvFilter`).
    pub level: String,
}

/// `log.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
        }
    }
}

impl LogConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        match EnvFilter::try_new(&self.level) {
            Ok(_) if !self.level.trim().is_empty() => Vec::new(),
            _ => vec![(
                "log.level",
                "must be error, warn, info, debug, trace, or directives such as `info,usecases=debug`"
                    .to_owned(),
            )],
        }
    }
}
