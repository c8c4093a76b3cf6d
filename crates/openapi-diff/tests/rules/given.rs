//! What clients read: whatever was promised is kept.

use serde_json::{Value, json};

use crate::{LIST, OFFER, breaks_as, passes};

#[test]
fn answers_keep_their_promises() {
    breaks_as(
        LIST,
        "/responses/204",
        &Value::Null,
        &["`listOffers 204`: it is gone"],
    );
    breaks_as(
        LIST,
        "/responses/400",
        &Value::Null,
        &["`listOffers 400`: it is gone"],
    );
    passes(LIST, "/responses/503", &json!({}));
    breaks_as(
        LIST,
        "/responses/202",
        &json!({}),
        &["`listOffers 202`: it is a new good answer"],
    );
    breaks_as(
        LIST,
        "/responses/200/content/application~1json",
        &Value::Null,
        &["`listOffers 200`: `application/json` is gone"],
    );
    breaks_as(
        LIST,
        "/responses/204/content",
        &json!({"application/json": {}}),
        &["`listOffers 204`: it has a body now"],
    );
    let header = "/responses/200/headers/X-Trace-Id";
    breaks_as(
        LIST,
        header,
        &Value::Null,
        &["`listOffers 200 X-Trace-Id`: it is gone"],
    );
    breaks_as(
        LIST,
        &format!("{header}/required"),
        &json!(false),
        &["`listOffers 200 X-Trace-Id`: it may be missing now"],
    );
    breaks_as(
        LIST,
        &format!("{header}/schema/maxLength"),
        &json!(65),
        &["`listOffers 200 X-Trace-Id`: `maxLength` was 64 and is 65"],
    );
    passes(LIST, &format!("{header}/schema/maxLength"), &json!(63));
    passes(LIST, "/responses/200/headers/X-New", &json!({"schema": {}}));
}

#[test]
fn fields_of_answers_stay_what_they_were() {
    passes(OFFER, "/new", &json!({"type": "string"}));
    passes(OFFER, "/stock/type", &json!("integer"));
    passes(OFFER, "/stock/maximum", &json!(9));
    passes(OFFER, "/status/enum", &json!(["draft"]));
    passes(OFFER, "/status/description", &json!("words"));
    passes(OFFER, "/status/x-anything", &json!(1));
    passes(OFFER, "/kind/enum", &json!(["new", "used"]));
    passes("/components/schemas/Offer", "/required", &json!(["id", "status"]));
    breaks_as(OFFER, "/status", &Value::Null, &["`Offer.status`: it is gone"]);
    breaks_as(
        "/components/schemas/Offer",
        "/required",
        &json!([]),
        &["`Offer.id`: it may be missing now"],
    );
    breaks_as(
        OFFER,
        "/id/type",
        &json!(["string", "null"]),
        &["`Offer.id`: its type was string and is string or null"],
    );
    breaks_as(
        OFFER,
        "/id/format",
        &Value::Null,
        &["`Offer.id`: its format was \"uuid\" and is null"],
    );
    breaks_as(
        OFFER,
        "/status/enum",
        &json!(["draft", "published", "x"]),
        &["`Offer.status`: the value \"x\" is new"],
    );
    breaks_as(
        OFFER,
        "/status/enum",
        &Value::Null,
        &["`Offer.status`: it may be any value now"],
    );
    breaks_as(OFFER, "/status/const", &json!("draft"), &[]);
    breaks_as(
        OFFER,
        "/stock/minimum",
        &json!(-1),
        &["`Offer.stock`: `minimum` was 0 and is -1"],
    );
    breaks_as(
        OFFER,
        "/related/uniqueItems",
        &json!(false),
        &["`Offer.related`: its elements may repeat now"],
    );
    breaks_as(
        OFFER,
        "/related/items",
        &Value::Null,
        &["`Offer.related[]`: its elements are of any kind now"],
    );
    breaks_as(
        OFFER,
        "/stock/allOf",
        &json!([{}]),
        &["`Offer.stock`: `allOf` changed, for which there is no rule"],
    );
    breaks_as(
        "/components/schemas/Event",
        "/properties/id",
        &Value::Null,
        &["`Event.id`: it is gone"],
    );
}

#[test]
fn null_beside_a_named_schema_is_a_type_as_well() {
    passes(OFFER, "/price", &json!({"$ref": "#/components/schemas/Money"}));
    breaks_as(
        OFFER,
        "/owner",
        &json!({"anyOf": [{"$ref": "#/components/schemas/Money"}, {"type": "null"}]}),
        &["`Offer.owner`: it may be `null` now"],
    );
    breaks_as(
        OFFER,
        "/price/anyOf/-",
        &json!({"type": "string"}),
        &["`Offer.price`: one of its alternatives changed"],
    );
    breaks_as(
        "/components/schemas/Money",
        "/properties/amount/type",
        &json!("number"),
        &["`Money.amount`: its type was integer and is number"],
    );
}

#[test]
fn codes_of_errors_are_a_closed_list() {
    let place = "/components/schemas/Entry/properties/code/enum";
    breaks_as(
        place,
        "",
        &json!(["a"]),
        &["`listOffers 400`: the code `b` is gone"],
    );
    breaks_as(
        place,
        "",
        &json!(["a", "b", "c"]),
        &["`Entry.code`: the value \"c\" is new"],
    );
}
