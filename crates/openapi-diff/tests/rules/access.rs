//! Who may call.

use serde_json::{Value, json};

use crate::{LIST, POST, breaks_as, passes};

#[test]
fn a_call_needs_no_more_than_it_did() {
    passes(LIST, "/security", &json!([]));
    passes(LIST, "/security/-", &json!({"other": []}));
    passes(LIST, "/security/0/oauth2", &json!([]));
    breaks_as(
        LIST,
        "/security/0/oauth2",
        &json!(["offers:read", "orders:read"]),
        &["`listOffers`: `oauth2` with [offers:read] does not suffice any more"],
    );
    breaks_as(
        LIST,
        "/security/1",
        &Value::Null,
        &["`listOffers`: `bearer` with [offers:read] does not suffice any more"],
    );
    breaks_as(
        POST,
        "/security/0",
        &json!({"bearer": []}),
        &["`createOffer`: a call without credentials does not suffice any more"],
    );
    let schemes = "/components/securitySchemes";
    breaks_as(
        schemes,
        "/oauth2",
        &Value::Null,
        &["`securitySchemes oauth2`: it is gone"],
    );
    breaks_as(
        schemes,
        "/oauth2/type",
        &json!("http"),
        &["`securitySchemes oauth2`: `type` changed"],
    );
    let flow = "`securitySchemes oauth2 clientCredentials`";
    breaks_as(
        schemes,
        "/oauth2/flows/clientCredentials",
        &Value::Null,
        &[&format!("{flow}: it is gone")],
    );
    breaks_as(
        schemes,
        "/oauth2/flows/clientCredentials/tokenUrl",
        &json!("/token"),
        &[&format!("{flow}: `tokenUrl` changed")],
    );
    breaks_as(
        schemes,
        "/oauth2/flows/clientCredentials/scopes/offers:read",
        &Value::Null,
        &[&format!("{flow}: the scope `offers:read` is gone")],
    );
    passes(
        schemes,
        "/oauth2/flows/clientCredentials/scopes/new",
        &json!("new"),
    );
}
