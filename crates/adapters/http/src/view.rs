//! Views of resources: fields are declared once for the `fields` parameter, the OpenAPI document and the response bytes.

/// Declares the view of a record: a type whose `FIELDS` are the names that `fields` may select, in the contract's order, and whose values
/// serialise the selected fields directly. `fields` may leave out any field except `id` and those after `never without`; the schema requires
/// them all, as the parameter's description says.
macro_rules! view {
    ($(#[$doc:meta])* $view:ident of $record:ident: $type:ty, named $title:literal, $description:literal
        $(, never without $always:literal)* { $($name:literal: $schema:expr => $value:expr,)+ }) => {
        $(#[$doc])*
        struct $view<'a> {
            $record: &'a $type,
            fields: ::web::query::Selection,
        }

        impl<'a> $view<'a> {
            const FIELDS: &'static [&'static str] = &[$($name,)+];

            /// The names of the fields that are always included.
            const ALWAYS: &'static [&'static str] = &["id", $($always,)*];

            /// The selected fields of a record.
            const fn new($record: &'a $type, fields: ::web::query::Selection) -> Self {
                Self { $record, fields }
            }
        }

        impl $view<'_> {
            /// The schema in the OpenAPI document.
            fn schema() -> ::web::schema::Node {
                ::web::schema::object(&[$(($name, $schema),)+]).describe($description).named($title)
            }
        }

        impl ::serde::Serialize for $view<'_> {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap;
                let $record = self.$record;
                let mut map = serializer.serialize_map(None)?;
                let mut indices = 0..;
                $(
                    let is_chosen = indices.next().is_some_and(|index| self.fields.has_index(index));
                    if is_chosen || Self::ALWAYS.contains(&$name) {
                        map.serialize_entry($name, &$value)?;
                    }
                )+
                map.end()
            }
        }
    };
}

/// Declares a part of a view: an object that is always complete.
macro_rules! part {
    ($(#[$doc:meta])* $part:ident $(<$life:lifetime>)?, named $title:literal, $description:literal
        { $($name:ident: $type:ty = $schema:expr,)+ }) => {
        $(#[$doc])*
        #[derive(::serde::Serialize)]
        pub(crate) struct $part $(<$life>)? {
            $($name: $type,)+
        }

        impl $(<$life>)? $part $(<$life>)? {
            /// The schema in the OpenAPI document.
            pub(crate) fn schema() -> ::web::schema::Node {
                let members = [$((stringify!($name), $schema),)+];
                ::web::schema::object(&members).describe($description).named($title)
            }
        }
    };
}

pub(crate) use {part, view};

/// Includes an example of the OpenAPI document.
macro_rules! example {
    ($name:literal) => {
        || {
            ::web::schema::Node::parse(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/openapi/examples/",
                $name,
                ".json"
            )))
        }
    };
}

/// Includes the Markdown file of an operation.
macro_rules! prose {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/", $name, ".md"))
    };
}

/// The ids that all examples share.
pub(crate) mod examples {
    use kernel::OfferId;

    pub(crate) const OFFER: &str = "01936b2e-8f6a-7c31-9a54-3f2d8c1b7e90";
    pub(crate) const ORDER: &str = "01936c01-52b7-7f0e-8d6e-6b1a9e24c7d3";
    pub(crate) const WEBHOOK: &str = "01936d10-7a3b-7c4d-8e5f-6a7b8c9d0e1f";

    /// The items of the example order.
    pub(crate) fn offers() -> Vec<OfferId> {
        OFFER.parse().into_iter().collect()
    }
}

pub(crate) use {example, prose};
