//! The document as the explorer has it: of the origin that the page was opened at, and without what would be sent with every
//! request unasked.

use web::schema::Node;

use super::document::{is_true, list, text};

/// Where the explorer reads it.
pub(crate) const PATH: &str = "/docs/explorer/openapi.json";

/// The document, changed for the explorer.
///
/// Addresses of this service are relative to the page, which may call no other origin than its own, whatever
/// `server.public_url` says. Optional headers have no examples, since Swagger UI would send them: a second write under the
/// same `Idempotency-Key` is refused. The consent of a seller is no way to a token here: it takes PKCE and an address of the
/// application's own to come back to, and the page has neither.
pub(crate) fn document(openapi: &str) -> String {
    let mut document = Node::parse(openapi);
    let origin = list(&document, "servers")
        .first()
        .map_or("", |server| text(server, "url"));
    let origin = origin.trim_end_matches('/').to_owned();
    if let Some(servers) = place(&mut document, &["servers"]) {
        *servers = Node::List(vec![Node::of([("url", "/".into())])]);
    }
    for part in ["paths", "components"] {
        if let Some(part) = place(&mut document, &[part]) {
            empty_optional_headers(part);
        }
    }
    let schemes = ["components", "securitySchemes"];
    if let Some(schemes) = place(&mut document, &schemes) {
        if let Some(Node::Object(flows)) = place(schemes, &["oauth2", "flows"]) {
            flows.shift_remove("authorizationCode");
            flows.values_mut().for_each(|flow| make_relative(flow, &origin));
        }
        if let Some(Node::Text(about)) = place(schemes, &["bearer", "description"]) {
            about.push_str(" Paste it here.");
        }
    }
    document.to_string()
}

/// What stands at this place.
fn place<'a>(node: &'a mut Node, names: &[&str]) -> Option<&'a mut Node> {
    names.iter().try_fold(node, |node, name| match node {
        Node::Object(members) => members.get_mut(*name),
        _ => None,
    })
}

/// Takes the examples out of every optional header parameter.
fn empty_optional_headers(node: &mut Node) {
    let is_one = text(node, "in") == "header" && !is_true(node, "required");
    match node {
        Node::Object(members) if is_one => {
            let mut schema = members.get_mut("schema");
            for name in ["example", "examples"] {
                if let Some(Node::Object(schema)) = schema.as_deref_mut() {
                    schema.shift_remove(name);
                }
            }
            members.retain(|name, _| name != "example" && name != "examples");
        }
        Node::Object(members) => members.values_mut().for_each(empty_optional_headers),
        Node::List(elements) => elements.iter_mut().for_each(empty_optional_headers),
        _ => {}
    }
}

/// Makes the addresses of a flow relative to the origin.
fn make_relative(flow: &mut Node, origin: &str) {
    let Node::Object(members) = flow else {
        return;
    };
    for member in members.values_mut() {
        if let Node::Text(url) = member
            && let Some(path) = url.strip_prefix(origin)
        {
            *url = path.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::members;
    use super::*;

    const OPENAPI: &str = include_str!("../../../../../docs/openapi.json");

    /// Every parameter in a header, by its name.
    fn headers<'a>(node: &'a Node, found: &mut Vec<(&'a str, &'a Node)>) {
        if text(node, "in") == "header" && node.get("schema").is_some() {
            found.push((text(node, "name"), node));
        }
        match node {
            Node::Object(_) => members(node).for_each(|(_, member)| headers(member, found)),
            Node::List(elements) => elements.iter().for_each(|element| headers(element, found)),
            _ => {}
        }
    }

    #[test]
    fn optional_headers_are_empty_and_required_ones_are_not() {
        let parsed = Node::parse(&document(OPENAPI));
        let mut found = Vec::new();
        headers(parsed.get("components").unwrap(), &mut found);
        headers(parsed.get("paths").unwrap(), &mut found);
        let has_example = |name: &str| {
            let mut named = found.iter().filter(|(other, _)| *other == name).peekable();
            assert!(named.peek().is_some(), "{name}");
            named.any(|(_, header)| header.get("example").is_some() || header.get("examples").is_some())
        };
        assert!(!has_example("Idempotency-Key"));
        assert!(!has_example("X-Request-Id"));
        assert!(has_example("User-Agent"));
    }

    #[test]
    fn examples_of_headers_go_wherever_they_stand() {
        let changed = document(
            r#"{"paths": {"/x": {"get": {"parameters": [
                {"name": "A", "in": "header", "example": 1, "schema": {"type": "string", "examples": [1]}},
                {"name": "B", "in": "header", "required": true, "example": 1},
                {"name": "c", "in": "query", "example": 1}
            ]}}}}"#,
        );
        assert_eq!(
            changed,
            r#"{"paths":{"/x":{"get":{"parameters":[{"name":"A","in":"header","schema":{"type":"string"}},{"name":"B","in":"header","required":true,"example":1},{"name":"c","in":"query","example":1}]}}}}"#
        );
    }

    #[test]
    fn requests_go_to_the_origin_of_the_page() {
        let parsed = Node::parse(&document(OPENAPI));
        assert_eq!(parsed.get("servers").unwrap().to_string(), r#"[{"url":"/"}]"#);
        let schemes = ["components", "securitySchemes", "oauth2", "flows"];
        let flows = schemes
            .iter()
            .try_fold(&parsed, |node, name| node.get(name))
            .unwrap();
        let flows: Vec<_> = members(flows)
            .map(|(name, flow)| (name, text(flow, "tokenUrl")))
            .collect();
        assert_eq!(flows, [("clientCredentials", "/oauth/token")]);
    }

    #[test]
    fn the_rest_is_what_the_service_says() {
        let (served, parsed) = (Node::parse(OPENAPI), Node::parse(&document(OPENAPI)));
        for part in ["info", "tags", "webhooks"] {
            assert_eq!(parsed.get(part), served.get(part), "{part}");
        }
        let names = |document: &Node| -> Vec<String> {
            let paths = members(document.get("paths").unwrap());
            paths.map(|(path, _)| path.to_owned()).collect()
        };
        assert_eq!(names(&parsed), names(&served));
    }
}
