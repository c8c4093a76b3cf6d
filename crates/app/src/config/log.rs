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
        let (text, filter) = (self.level.trim(), EnvFilter::try_new(&self.level));
        // The filter takes a lone word for a part of the program, and nothing else is logged then.
        let is_fine = filter.is_ok() && !text.is_empty() && !text.split(',').any(is_lone_word);
        if is_fine {
            return Vec::new();
        }
        let rule =
            "must be error, warn, info, debug, trace, off, or directives such as `info,usecases=debug`";
        vec![("log.level", rule.to_owned())]
    }
}

/// True for a directive that is neither a level nor says which one it is about.
fn is_lone_word(directive: &str) -> bool {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let directive = directive.trim();
    let is_level = LEVELS.iter().any(|level| directive.eq_ignore_ascii_case(level));
    !is_level && !directive.contains(['=', '[', ']', '{', '}'])
}
