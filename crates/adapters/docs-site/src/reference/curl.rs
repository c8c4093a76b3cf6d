//! A call of an operation with `curl`, with the variables that the guides use.

use std::fmt::Write as _;

use web::schema::Node;

use super::document::{example, list, members, plain, text};

/// The call, over as many lines as it has parts.
pub(super) fn call(method: &str, path: &str, node: &Node, parameters: &[&Node]) -> String {
    let mut call = format!("curl -s \"$api{}\"", filled(path, parameters));
    let mut add = |part: &str| {
        let _ = write!(call, " \\\n  {part}");
    };
    let content = node.get("requestBody").and_then(|body| body.get("content"));
    if method != "GET" && (method != "POST" || content.is_none()) {
        add(&format!("-X {method}"));
    }
    let schemes: Vec<_> = list(node, "security")
        .iter()
        .flat_map(members)
        .map(|(name, _)| name)
        .collect();
    if schemes.contains(&"bearer") {
        add("-H \"Authorization: Bearer $token\"");
    } else if schemes.contains(&"client") {
        add("-u \"$client_id:$client_secret\"");
    }
    let has = |name: &str| parameters.iter().any(|parameter| text(parameter, "name") == name);
    if has("User-Agent") {
        add("-A 'MyShopSync/1.4'");
    }
    if has("Idempotency-Key") {
        add("-H \"Idempotency-Key: $(uuidgen)\"");
    }
    for query in parameters.iter().filter(|one| text(one, "in") == "query") {
        if let (true, Some(value)) = (super::document::is_true(query, "required"), example(query)) {
            add(&format!(
                "-G --data-urlencode {}",
                quoted(&pair(text(query, "name"), value))
            ));
        }
    }
    let media = |name: &str| content.and_then(|content| content.get(name));
    if let Some(value) = media("application/x-www-form-urlencoded").and_then(body) {
        for (name, value) in members(value) {
            add(&format!("--data-urlencode {}", quoted(&pair(name, value))));
        }
    } else if let Some(value) = media("application/json").and_then(body) {
        add("-H 'Content-Type: application/json'");
        add(&format!("-d {}", quoted(&value.to_string())));
    }
    if redirects(node) {
        add("-w '%{redirect_url}\\n'");
    }
    call
}

/// Whether the good answer is a redirect, of which curl prints nothing by itself.
fn redirects(node: &Node) -> bool {
    let responses = node.get("responses").into_iter().flat_map(members);
    let good = |status: &str| status.starts_with('2') || status.starts_with('3');
    let mut good = responses
        .map(|(status, _)| status)
        .filter(|status| good(status))
        .peekable();
    good.peek().is_some() && good.all(|status| status.starts_with('3'))
}

/// The path with the examples of its parameters.
fn filled(path: &str, parameters: &[&Node]) -> String {
    parameters
        .iter()
        .filter(|parameter| text(parameter, "in") == "path")
        .fold(path.to_owned(), |path, parameter| {
            let value = example(parameter).map(plain).unwrap_or_default();
            path.replace(&format!("{{{}}}", text(parameter, "name")), &value)
        })
}

fn body(media: &Node) -> Option<&Node> {
    members(media.get("examples")?).next()?.1.get("value")
}

fn pair(name: &str, value: &Node) -> String {
    format!("{name}={}", plain(value))
}

/// One word for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_everything_that_the_operation_asks_for() {
        let node = Node::parse(
            r#"{"security": [{"bearer": ["x"]}], "requestBody": {"content": {"application/json":
            {"examples": {"example": {"value": {"title": "Ewa's"}}}}}}}"#,
        );
        let parameters = [
            r#"{"name": "id", "in": "path", "example": "7"}"#,
            r#"{"name": "User-Agent", "in": "header"}"#,
            r#"{"name": "Idempotency-Key", "in": "header"}"#,
            r#"{"name": "fields", "in": "query"}"#,
        ]
        .map(Node::parse);
        assert_eq!(
            call("PATCH", "/v1/things/{id}", &node, &parameters.each_ref()),
            r#"curl -s "$api/v1/things/7" \
  -X PATCH \
  -H "Authorization: Bearer $token" \
  -A 'MyShopSync/1.4' \
  -H "Idempotency-Key: $(uuidgen)" \
  -H 'Content-Type: application/json' \
  -d '{"title":"Ewa'\''s"}'"#
        );
    }

    #[test]
    fn required_queries_and_forms_are_encoded() {
        let node = Node::parse("{}");
        let query = Node::parse(r#"{"name": "q", "in": "query", "required": true, "example": "a b"}"#);
        assert_eq!(
            call("GET", "/x", &node, &[&query]),
            "curl -s \"$api/x\" \\\n  -G --data-urlencode 'q=a b'"
        );
        let redirect = Node::parse(r#"{"responses": {"302": {}, "400": {}}}"#);
        assert_eq!(
            call("GET", "/x", &redirect, &[]),
            "curl -s \"$api/x\" \\\n  -w '%{redirect_url}\\n'"
        );
        let form = Node::parse(
            r#"{"security": [{"client": []}], "requestBody": {"content": {"application/x-www-form-urlencoded":
            {"examples": {"example": {"value": {"grant_type": "y"}}}}}}}"#,
        );
        assert_eq!(
            call("POST", "/t", &form, &[]),
            "curl -s \"$api/t\" \\\n  -u \"$client_id:$client_secret\" \\\n  --data-urlencode 'grant_type=y'"
        );
    }
}
