//! What clients send: whatever was taken is taken still.

use serde_json::{Value, json};

use crate::{HOOK, LIST, NEW, POST, breaks_as, passes};

#[test]
fn parameters_stay_and_none_is_newly_required() {
    breaks_as(
        LIST,
        "/parameters/1",
        &Value::Null,
        &["`listOffers query status`: it is gone"],
    );
    breaks_as(
        LIST,
        "/parameters/1/required",
        &json!(true),
        &["`listOffers query status`: it is required now"],
    );
    breaks_as(
        LIST,
        "/parameters/1/explode",
        &json!(true),
        &["`listOffers query status`: `explode` changed"],
    );
    let new = |required: bool| json!({"name": "new", "in": "query", "required": required, "schema": {}});
    passes(LIST, "/parameters/-", &new(false));
    breaks_as(
        LIST,
        "/parameters/-",
        &new(true),
        &["`listOffers query new`: it is new, and required"],
    );
    passes("/components/parameters/UserAgent", "/required", &json!(false));
    breaks_as(
        "/components/parameters/UserAgent",
        "/schema/pattern",
        &json!("^a"),
        &["`listOffers header User-Agent`: its pattern was null and is \"^a\""],
    );
    breaks_as(
        HOOK,
        "/parameters/0",
        &Value::Null,
        &["`onOfferRejected header X-Event`: it is gone"],
    );
    breaks_as(
        HOOK,
        "/parameters/0/required",
        &json!(false),
        &["`onOfferRejected header X-Event`: it may be missing now"],
    );
}

#[test]
fn what_a_parameter_takes_only_grows() {
    let place = "/parameters/1/schema/enum";
    passes(LIST, place, &json!(["draft", "published", "proposed"]));
    breaks_as(
        LIST,
        place,
        &json!(["draft"]),
        &["`listOffers query status`: the value \"published\" is not taken any more"],
    );
    let place = "/parameters/2/schema/pattern";
    passes(LIST, place, &json!("^(id|title|new)(,(id|title|new))*$"));
    passes(LIST, place, &Value::Null);
    breaks_as(
        LIST,
        place,
        &json!("^(id)(,(id))*$"),
        &[
            "`listOffers query fields`: its pattern was \"^(id|title)(,(id|title))*$\" and is \"^(id)(,(id))*$\"",
        ],
    );
    breaks_as(
        LIST,
        "/parameters/3/schema/default",
        &json!(20),
        &["`listOffers query limit`: its default was 50 and is 20"],
    );
    breaks_as(
        LIST,
        "/parameters/3/schema/maximum",
        &json!(200),
        &["`listOffers query limit`: `maximum` was null and is 200"],
    );
}

#[test]
fn bodies_take_what_they_took() {
    breaks_as(
        POST,
        "/requestBody",
        &Value::Null,
        &["`createOffer body`: it is gone"],
    );
    breaks_as(
        POST,
        "/requestBody/required",
        &json!(true),
        &["`createOffer body`: it is required now"],
    );
    breaks_as(
        POST,
        "/requestBody/content/application~1json",
        &Value::Null,
        &["`createOffer body`: `application/json` is gone"],
    );
    passes(POST, "/requestBody/content/text~1csv", &json!({"schema": {}}));
    passes(NEW, "/properties/new", &json!({"type": "string"}));
    passes(NEW, "/required", &json!([]));
    passes(NEW, "/additionalProperties", &Value::Null);
    passes(NEW, "/properties/title/maxLength", &json!(200));
    passes(NEW, "/properties/stock/minimum", &Value::Null);
    passes(NEW, "/properties/tags/items", &Value::Null);
    passes(
        NEW,
        "/properties/stock/type",
        &json!(["number", "null", "string"]),
    );
}

#[test]
fn rules_for_fields_that_are_sent_only_loosen() {
    breaks_as(
        NEW,
        "/properties/title",
        &Value::Null,
        &["`NewOffer.title`: it is gone"],
    );
    breaks_as(
        NEW,
        "/required",
        &json!(["title", "stock"]),
        &["`NewOffer.stock`: it is required now"],
    );
    breaks_as(
        NEW,
        "/required",
        &json!(["title", "new"]),
        &["`NewOffer.new`: it is required now"],
    );
    breaks_as(
        NEW,
        "/properties/title/maxLength",
        &json!(99),
        &["`NewOffer.title`: `maxLength` was 100 and is 99"],
    );
    breaks_as(
        NEW,
        "/properties/title/minLength",
        &json!(1),
        &["`NewOffer.title`: `minLength` was null and is 1"],
    );
    breaks_as(
        NEW,
        "/minProperties",
        &json!(2),
        &["`NewOffer`: `minProperties` was 1 and is 2"],
    );
    breaks_as(
        NEW,
        "/properties/title/format",
        &json!("uri"),
        &["`NewOffer.title`: its format was null and is \"uri\""],
    );
    breaks_as(
        NEW,
        "/properties/stock/type",
        &json!("integer"),
        &["`NewOffer.stock`: its type was integer or null and is integer"],
    );
    breaks_as(
        NEW,
        "/properties/tags/items/maxLength",
        &json!(9),
        &["`NewOffer.tags[]`: `maxLength` was null and is 9"],
    );
    breaks_as(
        NEW,
        "/properties/tags/uniqueItems",
        &json!(true),
        &["`NewOffer.tags`: its elements have to be unique now"],
    );
    breaks_as(
        NEW,
        "/properties/title/enum",
        &json!(["x"]),
        &["`NewOffer.title`: it is one of few values now"],
    );
    breaks_as(
        "/components/schemas/Money",
        "/additionalProperties",
        &json!(false),
        &[],
    );
}
