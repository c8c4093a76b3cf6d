//! The effective configuration as a text that is valid TOML.

use std::fmt;

use figment::value::{Dict, Value};

use super::Loaded;

impl fmt::Display for Loaded {
    /// Each key with its effective value and, where that is not the default, its source. Secrets are hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Value::serialize(&self.config).map_err(|_| fmt::Error)?;
        let sections = whole.into_dict().ok_or(fmt::Error)?;
        for (n, (section, values)) in sections.into_iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            writeln!(f, "{separator}[{section}]")?;
            self.write_section(f, &section, values.into_dict().ok_or(fmt::Error)?)?;
        }
        Ok(())
    }
}

impl Loaded {
    fn write_section(&self, f: &mut fmt::Formatter<'_>, section: &str, values: Dict) -> fmt::Result {
        for (name, value) in values {
            let source = self.source(&format!("{section}.{name}"));
            let source = source.map(|source| format!("  # {source}")).unwrap_or_default();
            if matches!(value, Value::Empty(..)) {
                writeln!(f, "# {name} is not set{source}")?;
                continue;
            }
            // A JSON text, number or array of these is written alike in TOML.
            let value = serde_json::to_string(&value).map_err(|_| fmt::Error)?;
            writeln!(f, "{name} = {value}{source}")?;
        }
        Ok(())
    }
}
