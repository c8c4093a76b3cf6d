//! How the kinds of values are called in the reference of the configuration.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    server::PublicUrl,
    values::{List, Network, Period, Secret, ServiceUrl},
    webhooks::NameServer,
};

/// The name of the schema's member that holds a kind.
pub(super) const KIND: &str = "x-kind";

macro_rules! kind {
    ($name:ty, $kind:literal) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "x-kind": $kind })
            }
        }
    };
}

kind!(Period, "duration");
kind!(Secret, "secret text");
kind!(Network, "address or network");
kind!(ServiceUrl, "URL");
kind!(PublicUrl, "URL");
kind!(NameServer, "address, with a port where it is not 53");

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of = generator.subschema_for::<T>();
        let of = of.get(KIND).and_then(|kind| kind.as_str()).unwrap_or("text");
        json_schema!({ "type": "array", "x-kind": format!("list: {of}") })
    }
}
