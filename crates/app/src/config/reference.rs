//! The reference of all keys, from the fields of [`Config`]: their comments and defaults, their ranges, and
//! the commands that read them.

use std::fmt::{self, Display, Write as _};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use figment::value::Value as Effective;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use super::{Config, Fault, Period, must_be};

#[derive(Debug, Clone)]
pub struct Key {
    /// `section.name`.
    pub name: String,
    /// The type of its value, or the allowed words.
    pub kind: String,
    /// What a value of another type should be.
    pub(super) expected: String,
    /// The default in TOML; `None` if the key has no default.
    pub default: Option<String>,
    /// The bounds of the value, or of each item of a list.
    pub(super) bounds: Option<RangeInclusive<Measure>>,
    /// The allowed values, if they are fewer than the type allows.
    pub range: Option<String>,
    pub meaning: String,
    /// The commands that read it.
    pub read_by: String,
    /// Whether its value must never be displayed.
    pub is_secret: bool,
    pub(super) is_list: bool,
}

impl Key {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("SELLER_API__{}", self.name.replace('.', "__").to_uppercase())
    }

    fn of(name: String, schema: &Value, section_read_by: &str) -> Self {
        let items = schema.get("items");
        let range = range(schema);
        Self {
            name,
            kind: kind(schema),
            expected: expected(schema, range.as_deref()),
            default: schema
                .get("default")
                .filter(|default| !default.is_null())
                .map(Value::to_string),
            bounds: bounds(schema),
            range,
            meaning: meaning(schema),
            read_by: text(schema, "x-read-by").unwrap_or(section_read_by).to_owned(),
            is_secret: items.unwrap_or(schema).get("writeOnly").is_some(),
            is_list: items.is_some(),
        }
    }
}

/// A value that can have bounds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
#[serde(untagged)]
pub(super) enum Measure {
    Number(f64),
    Duration(Period),
}

impl Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Duration(duration) => duration.fmt(f),
        }
    }
}

/// A section, such as `server` or `carriers.dhl`, and its keys.
#[derive(Debug, Clone)]
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
            let read_by = text(section, "x-read-by").unwrap_or_default();
            collect(name, section, read_by, &mut sections);
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
    let key = |(key, schema): &(&String, &Value)| Key::of(format!("{name}.{key}"), schema, read_by);
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

fn text<'a>(schema: &'a Value, member: &str) -> Option<&'a str> {
    schema.get(member)?.as_str()
}

/// The comment of a field on one line.
fn meaning(schema: &Value) -> String {
    let words = text(schema, "description").unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The JSON type. That of an optional key is a list that includes `null`.
fn json_type(schema: &Value) -> &str {
    let of = schema.get("type");
    of.and_then(|of| of.as_str().or_else(|| of.get(0)?.as_str()))
        .unwrap_or_default()
}

fn kind(schema: &Value) -> String {
    if let Some(kind) = text(schema, "x-kind") {
        return kind.to_owned();
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let choices = choices
            .iter()
            .filter_map(|choice| Some(format!("`{}`: {}", text(choice, "const")?, meaning(choice))));
        return choices.collect::<Vec<_>>().join(" ");
    }
    match json_type(schema) {
        "integer" | "number" => "number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => format!("list: {}", schema.get("items").map(kind).unwrap_or_default()),
        _ => "text".to_owned(),
    }
}

fn bounds(schema: &Value) -> Option<RangeInclusive<Measure>> {
    let bound = |member| Measure::deserialize(schema.get(member)?).ok();
    Some(bound("minimum")?..=bound("maximum")?)
}

fn range(schema: &Value) -> Option<String> {
    if let Some(rule) = text(schema, "x-rule") {
        return Some(rule.to_owned());
    }
    let bounds = bounds(schema)?;
    let range = format!("from {} to {}", bounds.start(), bounds.end());
    Some(match (schema.get("minItems"), schema.get("items")) {
        (Some(count), Some(items)) => format!("{count} {}s {range}", kind(items)),
        _ => range,
    })
}

fn expected(schema: &Value, range: Option<&str>) -> String {
    let of_type = match json_type(schema) {
        "integer" | "number" => range.unwrap_or("a whole number from 0 on"),
        "boolean" => "true or false",
        "array" => range.unwrap_or("a list (an array in TOML, separated by commas in the environment)"),
        _ => "a text",
    };
    text(schema, "x-expected").unwrap_or(of_type).to_owned()
}

/// The keys with values outside their bounds.
pub(super) fn out_of_range(config: &Config) -> Vec<Fault> {
    let Ok(values) = Effective::serialize(config) else {
        return Vec::new();
    };
    let check = |key: &Key| {
        let (bounds, range) = (key.bounds.as_ref()?, key.range.as_ref()?);
        let value = values.find_ref(&key.name)?;
        let items = value.as_array().unwrap_or(std::slice::from_ref(value));
        // Nothing to measure in a key that is not set.
        let fits = |item: &Effective| {
            let measure = item.deserialize().ok();
            measure.is_none_or(|measure| bounds.contains(&measure))
        };
        (!items.iter().all(fits)).then(|| must_be(&key.name, range))
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
