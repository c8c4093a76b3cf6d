//! What is shown once, by the number of the form that asked for it.

use diesel::sql_types::{Binary, Nullable, Uuid as SqlUuid};
use uuid::Uuid;

use crate::statement::statement;

/// Keeps it, unless the form was sent before. Whoever sends it at the same moment waits for the first one's end.
pub(super) struct Keep<'a> {
    pub(super) session: &'a [u8],
    pub(super) form: Uuid,
    pub(super) sealed: Option<Vec<u8>>,
}

statement!(Keep<'_> => ():
    "insert into flashes (session_hash, form, sealed) values (", session: Binary,
    ", ", form: SqlUuid,
    ", ", sealed: Nullable<Binary>, ") on conflict (session_hash, form) do nothing");

/// Takes it out. The row stays, to tell that the form was sent.
pub(super) struct Take<'a> {
    pub(super) session: &'a [u8],
    pub(super) form: Uuid,
}

statement!(Take<'_> => Binary:
    "with kept as materialized (select session_hash, form, sealed from flashes where session_hash = ", session: Binary,
    " and form = ", form: SqlUuid,
    " and sealed is not null for no key update) \
     update flashes f set sealed = null from kept k where f.session_hash = k.session_hash and f.form = k.form \
     returning k.sealed");
