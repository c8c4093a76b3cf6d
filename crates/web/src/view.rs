//! Views of records. A field is declared once, for the `fields` parameter, the OpenAPI document and the
//! response bytes.

use serde::Serialize;

use crate::query::Selection;

/// The fields of a record in a response; [`view!`](crate::view!) declares them.
pub trait View: Serialize + Sized {
    type Record;
    /// The names that `fields` may select, in the contract's order.
    const FIELDS: &'static [&'static str];

    fn new(record: Self::Record, fields: Selection) -> Self;

    fn whole(record: Self::Record) -> Self {
        Self::new(record, Selection::ALL)
    }

    /// All fields but these.
    fn without(record: Self::Record, names: &[&str]) -> Self {
        Self::new(record, Selection::without(Self::FIELDS, names))
    }
}

/// Declares the [`View`] of a record: `"name": schema => value` for each field, in the contract's order, or
/// `"name" => value` where no document describes the view. Values serialise directly. `fields` may leave out
/// any field except `id` and those after `never without`; the schema requires them all, as the parameter's
/// description says.
#[macro_export]
macro_rules! view {
    ($(#[$doc:meta])* $vis:vis $view:ident $(<$life:lifetime>)? of $record:tt: $type:ty,
        named $title:literal $(, $description:literal)? $(, never without $always:literal)*
        { $($name:literal: $schema:expr => $value:expr,)+ }) => {
        $crate::view! {
            $(#[$doc])* $vis $view $(<$life>)? of $record: $type $(, never without $always)*
            { $($name => $value,)+ }
        }

        impl $(<$life>)? $view $(<$life>)? {
            /// The schema in the OpenAPI document.
            $vis fn schema() -> $crate::schema::Node {
                $crate::schema::object(&[$(($name, $schema),)+])$(.describe($description))?.named($title)
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis $view:ident $(<$life:lifetime>)? of $record:tt: $type:ty
        $(, never without $always:literal)* { $($name:literal => $value:expr,)+ }) => {
        $(#[$doc])*
        $vis struct $view $(<$life>)? {
            record: $type,
            fields: $crate::query::Selection,
        }

        impl $(<$life>)? $crate::view::View for $view $(<$life>)? {
            type Record = $type;
            const FIELDS: &'static [&'static str] = &[$($name,)+];

            fn new(record: $type, fields: $crate::query::Selection) -> Self {
                Self { record, fields }
            }
        }

        impl $(<$life>)? ::serde::Serialize for $view $(<$life>)? {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap;
                const ALWAYS: &[&str] = &["id", $($always,)*];
                let $record = &self.record;
                let mut map = serializer.serialize_map(None)?;
                let mut indices = 0..;
                $(
                    let is_chosen = indices.next().is_some_and(|index| self.fields.has_index(index));
                    if is_chosen || ALWAYS.contains(&$name) {
                        map.serialize_entry($name, &$value)?;
                    }
                )+
                map.end()
            }
        }
    };
}
