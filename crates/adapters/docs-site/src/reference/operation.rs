//! One operation or event, as its page tells it.

use web::schema::Node;

use super::curl;
use super::document::{Tree, is_true, list, members, plain, text};
use super::schema::{self, Field};
use crate::markdown::{self, Passage};

/// An operation, or an event as the request that receivers get.
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) tag: String,
    /// In capitals; `EVENT` for an event.
    pub(crate) method: String,
    /// The path's template; the name of an event.
    pub(crate) path: String,
    pub(crate) summary: String,
    /// As HTML.
    pub(crate) about: String,
    pub(crate) deprecated: bool,
    /// What a token needs.
    pub(crate) scopes: Vec<String>,
    pub(crate) parameters: Vec<Parameters>,
    pub(crate) body: Option<Body>,
    pub(crate) responses: Vec<Response>,
    /// A call, as HTML; empty for an event.
    pub(crate) call: String,
}

/// The parameters that stand in one place.
pub(crate) struct Parameters {
    /// Such as `Path`.
    pub(crate) place: &'static str,
    pub(crate) fields: Vec<Field>,
}

/// What is sent.
pub(crate) struct Body {
    /// The media types it may have.
    pub(crate) types: String,
    pub(crate) fields: Vec<Field>,
    /// As HTML.
    pub(crate) examples: Vec<Example>,
}

/// What is answered with one status.
pub(crate) struct Response {
    pub(crate) status: String,
    /// As HTML.
    pub(crate) about: String,
    pub(crate) headers: Vec<Field>,
    pub(crate) fields: Vec<Field>,
    pub(crate) examples: Vec<Example>,
    /// Whether it is a refusal: then its examples are named after codes.
    pub(crate) refuses: bool,
    /// The codes with which it may send a browser back to the client.
    pub(crate) redirects: Vec<String>,
}

/// A body, as HTML, and its name.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) code: String,
}

const PLACES: [(&str, &str); 3] = [("path", "Path"), ("query", "Query"), ("header", "Headers")];

impl Operation {
    pub(super) fn read(tree: Tree<'_>, method: &str, path: &str, node: &Node) -> Self {
        let parameters: Vec<_> = list(node, "parameters")
            .iter()
            .map(|parameter| tree.resolve(parameter))
            .collect();
        let at = |(place, name): (&str, &'static str)| {
            let here = parameters
                .iter()
                .filter(|parameter| text(parameter, "in") == place);
            let fields = here.map(|parameter| schema::parameter(tree, text(parameter, "name"), parameter));
            Parameters {
                place: name,
                fields: fields.collect(),
            }
        };
        let mut placed: Vec<_> = PLACES.into_iter().map(at).collect();
        placed.retain(|parameters| !parameters.fields.is_empty());
        let method = method.to_uppercase();
        Self {
            id: text(node, "operationId").to_owned(),
            tag: list(node, "tags").first().map(plain).unwrap_or_default(),
            call: markdown::code_block("sh", &curl::call(&method, path, node, &parameters)),
            method,
            path: path.to_owned(),
            summary: text(node, "summary").to_owned(),
            about: markdown::fragment(text(node, "description")),
            deprecated: is_true(node, "deprecated"),
            scopes: scopes(node),
            parameters: placed,
            body: node.get("requestBody").map(|body| Body::read(tree, body)),
            responses: node
                .get("responses")
                .into_iter()
                .flat_map(members)
                .map(|(status, response)| Response::read(tree, status, tree.resolve(response)))
                .collect(),
        }
    }

    pub(super) fn event(tree: Tree<'_>, name: &str, node: &Node) -> Self {
        Self {
            call: String::new(),
            method: "EVENT".to_owned(),
            ..Self::read(tree, "post", name, node)
        }
    }

    /// Where its page is.
    pub(crate) fn page(&self) -> String {
        format!("{}/{}", super::PATH, self.id)
    }

    /// Where it is in the explorer.
    pub(crate) fn explorer(&self) -> String {
        format!("{}#/{}/{}", super::EXPLORER, self.tag, self.id)
    }

    pub(crate) fn is_event(&self) -> bool {
        self.method == "EVENT"
    }

    /// What the navigation calls it.
    pub(crate) fn label(&self) -> &str {
        if self.is_event() {
            &self.path
        } else {
            &self.summary
        }
    }

    /// The codes of its refusals, those in redirects among them.
    pub(crate) fn codes(&self) -> impl Iterator<Item = &str> {
        self.responses.iter().flat_map(|response| {
            let refused = response.examples.iter().filter(|_| response.refuses);
            let refused = refused.map(|example| &example.name);
            refused.chain(&response.redirects).map(String::as_str)
        })
    }

    /// The headings of its page.
    pub(super) fn sections(&self) -> Vec<&'static str> {
        let has = [
            ("Parameters", !self.parameters.is_empty()),
            ("Body", self.body.is_some()),
            ("Call", !self.call.is_empty()),
            ("Responses", !self.responses.is_empty()),
        ];
        has.into_iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| name)
            .collect()
    }

    /// What the search looks through.
    pub(super) fn passages(&self) -> Vec<Passage> {
        let mut fields: Vec<_> = self.parameters.iter().flat_map(|one| &one.fields).collect();
        fields.extend(self.body.iter().flat_map(|body| &body.fields));
        fields.extend(self.responses.iter().flat_map(|response| &response.fields));
        let mut names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        names.extend(self.codes());
        let passage = |id: &str, heading: &str, text: String| Passage {
            id: id.to_owned(),
            heading: heading.to_owned(),
            text,
        };
        let about = crate::search::text_of(&self.about);
        vec![
            passage(
                "",
                "",
                format!("{} {} {}. {about}", self.method, self.path, self.id),
            ),
            passage("", "Fields and codes", names.join(" ")),
        ]
    }
}

impl Body {
    fn read(tree: Tree<'_>, node: &Node) -> Self {
        let content: Vec<_> = node.get("content").into_iter().flat_map(members).collect();
        let types: Vec<_> = content.iter().map(|(name, _)| *name).collect();
        let first = content.first().map(|(_, media)| *media);
        // The same in JSON and as a form: shown in JSON.
        let shown = content
            .iter()
            .find(|(name, _)| *name == "application/json")
            .map(|(_, media)| *media)
            .or(first);
        Self {
            types: types.join(", "),
            fields: shown
                .and_then(|media| media.get("schema"))
                .map(|schema| schema::fields(tree, schema))
                .unwrap_or_default(),
            examples: shown.map(examples).unwrap_or_default(),
        }
    }
}

impl Response {
    fn read(tree: Tree<'_>, status: &str, node: &Node) -> Self {
        let refuses = status.starts_with(['4', '5']) && node.get("content").is_some();
        let media = node
            .get("content")
            .and_then(|content| members(content).next())
            .map(|(_, media)| media);
        let schema = media.and_then(|media| media.get("schema")).filter(|_| !refuses);
        Self {
            status: status.to_owned(),
            about: markdown::fragment(text(node, "description")),
            headers: node
                .get("headers")
                .into_iter()
                .flat_map(members)
                .map(|(name, header)| schema::parameter(tree, name, tree.resolve(header)))
                .collect(),
            fields: schema
                .map(|schema| schema::fields(tree, schema))
                .unwrap_or_default(),
            examples: media.map(examples).unwrap_or_default(),
            refuses,
            redirects: node
                .get("x-redirect-error")
                .map(|schema| list(tree.resolve(schema), "enum").iter().map(plain).collect())
                .unwrap_or_default(),
        }
    }
}

fn scopes(node: &Node) -> Vec<String> {
    let mut scopes = Vec::new();
    for (_, needed) in list(node, "security").iter().flat_map(members) {
        if let Node::List(needed) = needed {
            scopes.extend(needed.iter().map(plain));
        }
    }
    scopes.sort();
    scopes.dedup();
    scopes
}

fn examples(media: &Node) -> Vec<Example> {
    let examples = media.get("examples").into_iter().flat_map(members);
    let example = |(name, example): (&str, &Node)| {
        let value = example.get("value")?;
        Some(Example {
            name: name.to_owned(),
            code: markdown::code_block("json", &format!("{value:#}")),
        })
    };
    examples.filter_map(example).collect()
}
