//! The effective configuration as a text that is valid TOML.

use std::fmt;

use figment::value::{Dict, Value};

use super::Loaded;

impl fmt::Display for Loaded {
    /// Each key with its effective value and, where that is not the default, its source. Secrets are hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Value::serialize(&self.config).map_err(|_| fmt::Error)?;
        for (section, values) in whole.into_dict().ok_or(fmt::Error)? {
            self.write_section(f, &section, values.into_dict().ok_or(fmt::Error)?)?;
        }
        Ok(())
    }
}

impl Loaded {
    /// The section's own keys, then the sections in it.
    fn write_section(&self, f: &mut fmt::Formatter<'_>, section: &str, values: Dict) -> fmt::Result {
        let (inner, own) = values
            .into_iter()
            .partition::<Vec<_>, _>(|(_, value)| matches!(value, Value::Dict(..)));
        if !own.is_empty() {
            writeln!(f, "[{section}]")?;
            for (name, value) in own {
                self.write_key(f, section, &name, &value)?;
            }
            writeln!(f)?;
        }
        for (name, values) in inner {
            self.write_section(
                f,
                &format!("{section}.{name}"),
                values.into_dict().ok_or(fmt::Error)?,
            )?;
        }
        Ok(())
    }

    fn write_key(&self, f: &mut fmt::Formatter<'_>, section: &str, name: &str, value: &Value) -> fmt::Result {
        let source = self.source(&format!("{section}.{name}"));
        let source = source.map(|source| format!("  # {source}")).unwrap_or_default();
        if matches!(value, Value::Empty(..)) {
            return writeln!(f, "# {name} is not set{source}");
        }
        // A JSON text, number or array of these is written alike in TOML.
        let value = serde_json::to_string(value).map_err(|_| fmt::Error)?;
        writeln!(f, "{name} = {value}{source}")
    }
}
