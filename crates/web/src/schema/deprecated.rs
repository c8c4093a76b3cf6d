//! Schemas of what goes away.

use super::node::Node;
use crate::deprecation::Deprecation;

impl Node {
    /// The same, declared deprecated: the document marks it, and [`Node::deprecations`] finds it.
    #[must_use]
    pub fn deprecated(self, notice: &'static Deprecation) -> Self {
        Self::Deprecated {
            schema: Box::new(self),
            notice,
        }
    }

    /// What a part of the document says of itself where it is deprecated.
    #[must_use]
    pub fn marked(self, notice: &Deprecation) -> Self {
        let said = match self.get("description") {
            Some(Self::Text(said)) => format!("{said} {notice}"),
            _ => notice.to_string(),
        };
        self.with("description", said).with("deprecated", true)
    }

    /// Everything within that is declared deprecated, as `Offer.brand`: the name of the schema and those of the members.
    pub fn deprecations(&self) -> Vec<(String, &'static Deprecation)> {
        let mut found = Vec::new();
        self.seek("", &mut found);
        found
    }

    fn seek(&self, place: &str, found: &mut Vec<(String, &'static Deprecation)>) {
        match self {
            Self::Deprecated { schema, notice } => {
                found.push((place.to_owned(), *notice));
                schema.seek(place, found);
            }
            Self::Named { name, schema, .. } => schema.seek(name, found),
            Self::List(elements) => elements.iter().for_each(|element| element.seek(place, found)),
            Self::Object(members) => {
                for (key, member) in members {
                    match (key.as_str(), member) {
                        ("properties", Self::Object(properties)) => {
                            for (name, property) in properties {
                                property.seek(&format!("{place}.{name}"), found);
                            }
                        }
                        _ => member.seek(place, found),
                    }
                }
            }
            Self::Null | Self::Bool(_) | Self::Integer(_) | Self::Text(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deprecation::day;
    use crate::schema::{Components, array, object, string};

    static GOING: Deprecation = Deprecation {
        since: day(2027, 1, 15),
        sunset: None,
        instead: "Use `maker`.",
        link: None,
    };

    #[test]
    fn a_deprecated_member_is_found_wherever_it_is_and_marked() {
        let status = string().named("Status");
        let offer = object(&[
            (
                "brand",
                string().said("Who made it.").or_null().deprecated(&GOING),
            ),
            ("status", status.deprecated(&GOING).said("Of moderation.")),
            ("title", string()),
        ])
        .named("Offer");
        let page = object(&[("items", array(offer))]);
        let places: Vec<_> = page.deprecations().into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["Offer.brand", "Offer.status"]);

        let mut components = Components::default();
        components.hoist(page);
        let (_, offer) = components.schemas().swap_remove(0);
        let Some(properties) = offer.get("properties") else {
            panic!("{offer}");
        };
        assert_eq!(
            properties.get("brand").unwrap().to_string(),
            concat!(
                r#"{"type":["string","null"],"description":"Who made it. **Deprecated** since 2027-01-15. Use `maker`.","#,
                r#""deprecated":true}"#,
            ),
        );
        assert_eq!(
            properties.get("status").unwrap().to_string(),
            concat!(
                r##"{"$ref":"#/components/schemas/Status","##,
                r#""description":"Of moderation. **Deprecated** since 2027-01-15. Use `maker`.","deprecated":true}"#,
            ),
        );
        assert_eq!(
            properties.get("title").unwrap().to_string(),
            r#"{"type":"string"}"#
        );
    }
}
