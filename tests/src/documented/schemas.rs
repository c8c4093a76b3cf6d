//! The document's schemas, made stricter: a published schema allows unknown members. A test must get exactly
//! the documented members, or those that `fields` selects.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::serving::lock;

/// Members that may be missing although no request left them out: schema and member.
pub(super) const MAY_LACK: [(&str, &str); 20] = [
    ("ConnectionEventData", "test"),
    ("JournaledEventData", "offer_id"),
    ("JournaledEventData", "order_id"),
    ("JournaledEventData", "order_number"),
    ("OfferChangeEntry", "path"),
    ("OfferChangeEntry", "userMessage"),
    ("OfferEventData", "test"),
    ("OrderEventData", "test"),
    ("TokenResponse", "refresh_token"),
    ("TokenBadRequestError", "reason"),
    ("OAuthUnauthorizedError", "reason"),
    ("BadRequestEntry", "path"),
    ("UnprocessableEntry", "path"),
    ("CorrectShipmentConflictEntry", "userMessage"),
    ("CreateShipmentConflictEntry", "item_ids"),
    ("CreateShipmentConflictEntry", "userMessage"),
    ("CreateWebhookUnprocessableEntry", "path"),
    ("CreateWebhookUnprocessableEntry", "userMessage"),
    ("UpdateOfferUnprocessableEntry", "path"),
    ("UpdateOfferUnprocessableEntry", "userMessage"),
];

/// Members that `fields` never leaves out.
const ALWAYS: [&str; 3] = ["id", "secret", "standard_secret"];

/// The expected members of an answer's resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Members {
    /// All members: the request had no `fields`.
    All,
    /// The members in `fields`; the members that are always present are added.
    Chosen(BTreeSet<String>),
}

impl Members {
    /// The members that a query selects.
    pub(super) fn asked_for(query: &str) -> Self {
        let mut query = form_urlencoded::parse(query.as_bytes());
        match query.find(|(name, _)| name == "fields") {
            None => Self::All,
            Some((_, names)) => Self::Chosen(names.split(',').map(str::to_owned).collect()),
        }
    }
}

/// The schemas by name, in the strict form.
pub(super) struct Schemas {
    strict: Map<String, Value>,
    made: Mutex<HashMap<(String, Members), Arc<Validator>>>,
}

impl Schemas {
    /// The schemas of a document.
    pub(super) fn of(document: &Value) -> Self {
        let published = document["components"]["schemas"].as_object();
        let mut strict = published.expect("schemas").clone();
        for (name, schema) in &mut strict {
            let may_lack = |member: &str| MAY_LACK.contains(&(name.as_str(), member));
            complete(schema, &may_lack);
        }
        Self {
            strict,
            made: Mutex::default(),
        }
    }

    /// The errors of `value` against a schema, missing and unknown members included.
    pub(super) fn faults(&self, schema: &Value, members: &Members, value: &Value) -> Vec<String> {
        let validator = self.validator(schema, members);
        let faults = validator.iter_errors(value);
        let told = faults.map(|fault| format!("{}: {fault}", fault.instance_path()));
        told.collect()
    }

    /// Compiles a validator once per schema and selection.
    fn validator(&self, schema: &Value, members: &Members) -> Arc<Validator> {
        let key = (schema.to_string(), members.clone());
        let mut made = lock(&self.made);
        Arc::clone(made.entry(key).or_insert_with(|| {
            let mut schemas = self.strict.clone();
            if let Members::Chosen(names) = members {
                let resource = self.resource(schema);
                choose(&mut schemas[resource], names);
            }
            let mut whole = schema.clone();
            complete(&mut whole, &|_| false);
            whole["components"]["schemas"] = schemas.into();
            let validator = jsonschema::options().should_validate_formats(true).build(&whole);
            Arc::new(validator.expect("the document's schemas are sound"))
        }))
    }

    /// The name of the schema that `fields` applies to: that of the answer, of a list's items, or of their offers
    /// where each is the outcome of a change.
    fn resource<'a>(&'a self, answered: &'a Value) -> &'a str {
        let name = referred(answered);
        let members = &self.strict[name]["properties"];
        match members.get("items") {
            // An order has items too, and an id.
            Some(items) if members.get("id").is_none() => {
                let item = referred(&items["items"]);
                match self.strict[item]["properties"].get("http_status") {
                    Some(_) => referred(&self.strict[item]["properties"]["offer"]),
                    None => item,
                }
            }
            _ => name,
        }
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

/// Requires every member of the objects in a schema and forbids all others.
fn complete(schema: &mut Value, may_lack: &impl Fn(&str) -> bool) {
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword) {
            complete(inner, may_lack);
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let variants = schema.get_mut(keyword).and_then(Value::as_array_mut);
        for variant in variants.into_iter().flatten() {
            complete(variant, may_lack);
        }
    }
    let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for member in members.values_mut() {
        complete(member, may_lack);
    }
    let names: Vec<Value> = members
        .keys()
        .filter(|name| !may_lack(name))
        .map(|name| name.as_str().into())
        .collect();
    schema["required"] = names.into();
    if schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = false.into();
    }
}

/// Reduces a resource's schema to the selected members and those that are always there.
fn choose(strict: &mut Value, names: &BTreeSet<String>) {
    let members = strict["properties"].as_object_mut().expect("members");
    members.retain(|name, _| names.contains(name) || ALWAYS.contains(&name.as_str()));
    strict["required"] = members.keys().map(String::as_str).collect();
}

fn referred(schema: &Value) -> &str {
    let reference = schema["$ref"].as_str().expect("a schema with a name");
    reference.rsplit('/').next().expect("a name")
}
