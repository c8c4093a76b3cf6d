//! What every key of the configuration means, made of the structs that it is read into: their comments, their defaults, and
//! the ranges and readers that stand beside the keys.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Config, kinds::KIND};

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `section.name`.
    pub name: String,
    /// The kind of value, or the words that it may be.
    pub kind: String,
    /// The default as it would be written in TOML; none where the key is not set.
    pub default: Option<String>,
    /// What values may be, where that is less than the kind.
    pub range: Option<String>,
    /// What it does.
    pub meaning: String,
    /// The commands that read it.
    pub read_by: String,
}

impl Key {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("SELLER_API__{}", self.name.replace('.', "__").to_uppercase())
    }
}

/// A section and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, such as `server` or `carriers.dhl`.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// Its keys, by name.
    pub keys: Vec<Key>,
}

/// Every section, by name.
pub fn sections() -> Vec<Section> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut sections = Vec::new();
    for (name, section) in properties(schema.as_value()) {
        collect(&name, section, text(section, "x-read-by"), &mut sections);
    }
    sections
}

fn collect(name: &str, schema: &Value, read_by: &str, sections: &mut Vec<Section>) {
    let (inner, own): (Vec<_>, Vec<_>) = properties(schema)
        .into_iter()
        .partition(|(_, value)| value.get("properties").is_some());
    if !own.is_empty() {
        let key = |(key, schema): &(String, &Value)| Key {
            name: format!("{name}.{key}"),
            kind: kind(schema),
            default: schema.get("default").and_then(written),
            range: schema.get("x-range").and_then(Value::as_str).map(str::to_owned),
            meaning: meaning(schema),
            read_by: match text(schema, "x-read-by") {
                "" => read_by.to_owned(),
                own => own.to_owned(),
            },
        };
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

/// The members of a section, by name.
fn properties(schema: &Value) -> Vec<(String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let pairs = properties.into_iter().flatten();
    let mut pairs = pairs
        .map(|(name, schema)| (name.clone(), schema))
        .collect::<Vec<_>>();
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    pairs
}

fn text<'a>(schema: &'a Value, member: &str) -> &'a str {
    schema.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A comment in one line.
fn meaning(schema: &Value) -> String {
    text(schema, "description")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn kind(schema: &Value) -> String {
    if let Some(kind) = schema.get(KIND).and_then(Value::as_str) {
        return kind.to_owned();
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let choices = choices
            .iter()
            .map(|choice| format!("`{}`: {}", text(choice, "const"), meaning(choice)));
        return choices.collect::<Vec<_>>().join(" ");
    }
    // What may be left out is a list of types, `null` among them.
    let of_type = schema.get("type");
    let of_type = of_type.and_then(|of| of.as_str().or_else(|| of.get(0)?.as_str()));
    match of_type {
        Some("integer") => "number",
        Some("boolean") => "`true` or `false`",
        _ => "text",
    }
    .to_owned()
}

/// A default as TOML has it; none for a key that is not set.
fn written(default: &Value) -> Option<String> {
    match default {
        Value::Null => None,
        value => Some(value.to_string()),
    }
}

const HEAD: &str = "\
# Configuration

<!-- Made of the program's own structs: `seller-api config reference > docs/operations/CONFIGURATION.md`. -->

Later ones win: defaults, the TOML file given by `--config`, environment variables, flags. In the file a key `server.bind` is `bind` in the
section `[server]`; in the environment it is `SELLER_API__SERVER__BIND`, which each table names. `DATABASE_URL` stands for `database.url`. Lists
are arrays in the file and separated by commas in the environment; durations read `500ms`, `10s`, `1h 30m`, `90d`. A key that nobody knows,
or a value that cannot be, stops the start with a line that names the key, where it came from, and the key that was probably meant.
`seller-api config` prints what is in force, secrets hidden. A dash stands for a key that is not set.
";

/// The page, in Markdown.
pub fn markdown() -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    for section in sections() {
        writeln!(page, "\n## `[{}]`\n\n{}\n", section.name, section.about)?;
        page.push_str("| key | variable | type | default | range | read by | meaning |\n|---|---|---|---|---|---|---|\n");
        for key in &section.keys {
            let default = key.default.as_ref().map(|default| format!("`{default}`"));
            writeln!(
                page,
                "| `{}` | `{}` | {} | {} | {} | {} | {} |",
                key.name,
                key.variable(),
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
