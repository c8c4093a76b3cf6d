//! The named schemas of a document.

use std::collections::BTreeMap;

use super::node::{Map, Node};

/// Collects named schemas. One name stands for one schema: of two that differ the clash is kept, for a test to find.
#[derive(Debug, Default)]
pub struct Components {
    schemas: BTreeMap<String, Node>,
    clashes: Vec<String>,
}

impl Components {
    /// The node with a reference in the place of every named schema in it.
    pub fn hoist(&mut self, node: Node) -> Node {
        match node {
            Node::List(elements) => elements
                .into_iter()
                .map(|element| self.hoist(element))
                .collect::<Vec<_>>()
                .into(),
            Node::Object(members) => Node::Object(self.hoist_members(members)),
            Node::Named { name, schema, beside } => {
                let schema = self.hoist(*schema);
                let reference = format!("#/components/schemas/{name}");
                match self.schemas.get(&name) {
                    Some(known) if *known != schema => self.clashes.push(name),
                    Some(_) => {}
                    None => drop(self.schemas.insert(name, schema)),
                }
                let mut members = Map::from([("$ref".to_owned(), reference.into())]);
                members.extend(self.hoist_members(beside));
                Node::Object(members)
            }
            Node::Deprecated { schema, notice } => self.hoist(*schema).marked(notice),
            leaf => leaf,
        }
    }

    fn hoist_members(&mut self, members: Map) -> Map {
        let members = members.into_iter();
        members.map(|(key, value)| (key, self.hoist(value))).collect()
    }

    /// The schemas by their names, in alphabetical order.
    pub fn schemas(self) -> Vec<(String, Node)> {
        self.schemas.into_iter().collect()
    }

    /// Names under which two different schemas were met.
    pub fn clashes(&self) -> &[String] {
        &self.clashes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{object, string};

    #[test]
    fn named_schemas_move_out_once_each() {
        let name = || string().named("Name");
        let pair = object(&[("first", name().said("Given.")), ("second", name().or_null())]);
        let mut components = Components::default();
        assert_eq!(
            components.hoist(pair).to_string(),
            concat!(
                r##"{"type":"object","required":["first","second"],"properties":{"##,
                r##""first":{"$ref":"#/components/schemas/Name","description":"Given."},"##,
                r##""second":{"anyOf":[{"$ref":"#/components/schemas/Name"},{"type":"null"}]}}}"##,
            )
        );
        assert_eq!(components.clashes(), Vec::<String>::new());
        assert_eq!(components.schemas(), [("Name".to_owned(), string())]);
    }

    #[test]
    fn one_name_for_two_schemas_is_a_clash() {
        let mut components = Components::default();
        components.hoist(vec![string().named("X"), object(&[]).named("X")].into());
        assert_eq!(components.clashes(), ["X"]);
    }
}
