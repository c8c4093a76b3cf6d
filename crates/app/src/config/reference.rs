//! The reference of all keys, from the fields of [`Config`]: their comments and defaults, their ranges, and the commands that read them.

use std::{fmt::Write as _, sync::LazyLock};

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Config, Fault, Period, fault};

/// A configuration key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `section.name`.
    pub name: String,
    /// The type of its value, or the allowed words.
    pub kind: String,
    /// The default in TOML; `None` if the key has no default.
    pub default: Option<String>,
    /// The allowed values, if they are fewer than the type allows.
    pub range: Option<String>,
    pub meaning: String,
    /// The commands that read it.
    pub read_by: String,
}

impl Key {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("SELLER_API__{}", self.name.replace('.', "__").to_uppercase())
    }

    /// Whether its value must never be displayed.
    pub(super) fn is_secret(&self) -> bool {
        self.kind.contains("secret")
    }

    pub(super) fn is_list(&self) -> bool {
        self.kind.starts_with("list")
    }

    /// The expected value, for a message about a wrong type.
    pub(super) fn expected(&self) -> String {
        let range = self.range.as_deref().filter(|range| range.starts_with("from "));
        match (self.kind.as_str(), range) {
            ("duration", _) => "a duration such as 500ms, 1m or 12h",
            ("an address with its port", _) => "an address with a port such as 127.0.0.1:8080",
            ("`true` or `false`", _) => "true or false",
            ("number", Some(range)) => range,
            ("number", None) => "a whole number from 0 on",
            _ if self.is_list() => self
                .range
                .as_deref()
                .unwrap_or("a list (an array in TOML, separated by commas in the environment)"),
            _ => "a text",
        }
        .to_owned()
    }
}

/// A section, such as `server` or `carriers.dhl`, and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub about: String,
    pub keys: Vec<Key>,
}

/// Every section, by name.
pub fn sections() -> &'static [Section] {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<Config>();
        let mut sections = Vec::new();
        for (name, section) in properties(schema.as_value()) {
            collect(name, section, text(section, "x-read-by"), &mut sections);
        }
        sections
    });
    &SECTIONS
}

pub fn keys() -> impl Iterator<Item = &'static Key> {
    sections().iter().flat_map(|section| &section.keys)
}

/// Adds a section and its inner sections.
fn collect(name: &str, schema: &Value, read_by: &str, sections: &mut Vec<Section>) {
    let (inner, own): (Vec<_>, Vec<_>) =
        properties(schema).partition(|(_, value)| value.get("properties").is_some());
    let key = |(key, schema): &(&String, &Value)| Key {
        name: format!("{name}.{key}"),
        kind: kind(schema),
        default: schema
            .get("default")
            .filter(|default| !default.is_null())
            .map(Value::to_string),
        range: schema.get("x-range").and_then(Value::as_str).map(str::to_owned),
        meaning: meaning(schema),
        read_by: match text(schema, "x-read-by") {
            "" => read_by.to_owned(),
            own => own.to_owned(),
        },
    };
    if !own.is_empty() {
        sections.push(Section {
            name: name.to_owned(),
            about: meaning(schema),
            keys: own.iter().map(key).collect(),
        });
    }
    for (key, section) in inner {
        collect(&format!("{name}.{key}"), section, read_by, sections);
    }
}

/// The members of a section, by name, as maps of JSON are sorted.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

fn text<'a>(schema: &'a Value, member: &str) -> &'a str {
    schema.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The comment of a field on one line.
fn meaning(schema: &Value) -> String {
    let words = text(schema, "description").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

fn kind(schema: &Value) -> String {
    if let Some(kind) = schema.get("x-kind").and_then(Value::as_str) {
        return kind.to_owned();
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let choices = choices
            .iter()
            .map(|choice| format!("`{}`: {}", text(choice, "const"), meaning(choice)));
        return choices.collect::<Vec<_>>().join(" ");
    }
    // The type of an optional key is a list that includes `null`.
    let of_type = schema.get("type");
    let of_type = of_type.and_then(|of| of.as_str().or_else(|| of.get(0)?.as_str()));
    match of_type {
        Some("integer") => "number".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("array") => format!("list: {}", schema.get("items").map(kind).unwrap_or_default()),
        _ => "text".to_owned(),
    }
}

/// The keys with values outside their ranges (`from A to B`), with the range.
pub(super) fn out_of_range(config: &Config) -> Vec<Fault> {
    let Ok(values) = serde_json::to_value(config) else {
        return Vec::new();
    };
    let check = |key: &Key| {
        let range = key.range.as_deref()?.strip_prefix("from ")?;
        let (least, most) = range.split_once(" to ")?;
        let value = values.pointer(&format!("/{}", key.name.replace('.', "/")))?;
        let fits = if key.kind == "duration" {
            let period = |text: &str| Period::try_from(text.to_owned()).ok();
            (period(least)?..=period(most)?).contains(&period(value.as_str()?)?)
        } else {
            let bound = |text: &str| text.parse::<f64>().ok();
            (bound(least)?..=bound(most)?).contains(&value.as_f64()?)
        };
        (!fits).then(|| fault(&key.name, format!("must be from {range}")))
    };
    keys().filter_map(check).collect()
}

const HEAD: &str = include_str!("reference.md");

/// The reference page, in Markdown.
pub fn markdown() -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    for section in sections() {
        writeln!(page, "\n## `[{}]`\n\n{}\n", section.name, section.about)?;
        page.push_str("| key | type | default | range | read by | meaning |\n|---|---|---|---|---|---|\n");
        for key in &section.keys {
            let default = key.default.as_ref().map(|default| format!("`{default}`"));
            writeln!(
                page,
                "| `{}` | {} | {} | {} | {} | {} |",
                key.name,
                key.kind,
                default.as_deref().unwrap_or("–"),
                key.range.as_deref().unwrap_or("–"),
                key.read_by,
                key.meaning
            )?;
        }
    }
    Ok(page)
}
