//! The statements over each column of sealed values: how its rows are ordered, and what its values are bound to.
//!
//! The bindings are those under which the values are sealed, written in SQL: see `sealing`, `webhooks::subscription_row` and,
//! among the use cases, `shown_once`.

use diesel::sql_types::{Array, BigInt, Binary, Bool, Nullable, Text};

use super::{PAGE, SealedPlace};
use crate::statement::statement;

/// What is asked of a page.
pub(super) struct Asked {
    /// Whether values are to be read, and not only what seals them.
    values: bool,
    /// The id of the key whose values are not needed.
    besides: String,
    first: String,
    second: String,
    limit: i64,
}

impl Asked {
    /// Which keys seal the values after a place.
    pub(super) fn keys(after: &SealedPlace) -> Self {
        Self {
            values: false,
            besides: String::new(),
            first: after.first.clone(),
            second: after.second.clone(),
            limit: PAGE.into(),
        }
    }

    /// The values after a place that another key has sealed than the one with this id.
    pub(super) fn others_than(key: &str, after: &SealedPlace) -> Self {
        Self {
            values: true,
            besides: key.to_owned(),
            ..Self::keys(after)
        }
    }
}

/// Values in the place of others.
#[derive(Default)]
pub(super) struct New {
    firsts: Vec<String>,
    seconds: Vec<String>,
    olds: Vec<Vec<u8>>,
    news: Vec<Vec<u8>>,
}

impl New {
    pub(super) fn push(&mut self, (first, second): (String, String), old: Vec<u8>, new: Vec<u8>) {
        self.firsts.push(first);
        self.seconds.push(second);
        self.olds.push(old);
        self.news.push(new);
    }

    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.olds.len()).unwrap_or(u64::MAX)
    }
}

/// The id of the key that sealed a value: its first byte is the id's length. One that is empty has none.
macro_rules! key {
    ($column:literal) => {
        concat!(
            "encode(substring(",
            $column,
            " from 2 for get_byte(",
            $column,
            " || '\\x00'::bytea, 0)), 'escape')"
        )
    };
}

/// The two statements over a column. A part of the primary key is written as SQL, as the text of it, and as what stands before
/// and after that text to make the part of it. The texts have names of their own, so that the order is that of the parts.
///
/// Rows that somebody else has locked are left out: with many rows locked in an order of its own, a statement that waited
/// could be one of two that wait for each other.
macro_rules! sealed_column {
    ($page:ident, $put:ident, $table:literal, $column:literal, $binding:literal,
     ($first:literal, $first_text:literal, $open_first:literal, $close_first:literal),
     ($second:literal, $second_text:literal, $open_second:literal, $close_second:literal)) => {
        pub(super) struct $page {
            pub(super) asked: Asked,
        }

        statement!($page => (Text, Text, Text, Binary, Nullable<Binary>):
            concat!("select ", $first_text, " as n_first, ", $second_text, " as n_second, ", key!($column), ", ", $binding, ", case when "),
            asked.values: Bool,
            concat!(" and ", key!($column), " <> "),
            asked.besides: Text,
            concat!(" then ", $column, " end from ", $table, " where ", $column, " is not null and (", $first, ", ", $second, ") > (",
                $open_first),
            asked.first: Text,
            concat!($close_first, ", ", $open_second),
            asked.second: Text,
            concat!($close_second, ") order by ", $first, ", ", $second, " limit "),
            asked.limit: BigInt, "");

        pub(super) struct $put {
            pub(super) new: New,
        }

        statement!($put => ():
            "with held as materialized (select n_first, n_second, n_old, n_new from unnest(",
            new.firsts: Array<Text>, ", ",
            new.seconds: Array<Text>, ", ",
            new.olds: Array<Binary>, ", ",
            new.news: Array<Binary>,
            concat!(") as n (n_first, n_second, n_old, n_new) join ", $table, " on ", $first, " = ", $open_first, "n_first", $close_first,
                " and ", $second, " = ", $open_second, "n_second", $close_second, " where ", $column,
                " = n_old for no key update of ", $table, " skip locked) \
                 update ", $table, " set ", $column, " = n_new from held where ", $first, " = ", $open_first, "n_first", $close_first,
                " and ", $second, " = ", $open_second, "n_second", $close_second, " and ", $column, " = n_old"));
    };
}

sealed_column!(
    SecretsPage,
    SecretsPut,
    "subscriptions",
    "secret",
    "uuid_send(seller_id) || uuid_send(id)",
    ("seller_id", "seller_id::text", "", "::uuid"),
    ("id", "id::text", "", "::uuid")
);

// Each part after its length in eight bytes.
sealed_column!(
    RememberedPage,
    RememberedPut,
    "idempotency",
    "body",
    "int8send(16) || uuid_send(seller_id) || int8send(octet_length(key)) || convert_to(key, 'UTF8') \
     || int8send(octet_length(fingerprint)) || fingerprint || int8send(16) || uuid_send(fence)",
    ("seller_id", "seller_id::text", "", "::uuid"),
    ("key", "key", "", "")
);

sealed_column!(
    LinksPage,
    LinksPut,
    "account_mails",
    "url",
    "uuid_send(id)",
    ("id", "id::text", "", "::uuid"),
    ("''::text", "''::text", "", "")
);

sealed_column!(
    FlashesPage,
    FlashesPut,
    "flashes",
    "sealed",
    "session_hash || uuid_send(form)",
    (
        "session_hash",
        "encode(session_hash, 'hex')",
        "decode(",
        ", 'hex')"
    ),
    ("form", "form::text", "", "::uuid")
);
