//! One-time links.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Binary, Text, Timestamptz, Uuid as SqlUuid};
use kernel::StoreError;
use oauth::{Link, LinkKind, SecretHash};
use uuid::Uuid;

use crate::{accounts::SellerColumns, statement::statement};

/// Stores a link in the place of the one of its kind and account before it.
pub(super) struct Add<'a> {
    hash: &'a [u8],
    seller: Uuid,
    kind: &'static str,
    expires_at: DateTime<Utc>,
}

statement!(Add<'_> => ():
    "insert into links (hash, seller_id, kind, expires_at) values (", hash: Binary,
    ", ", seller: SqlUuid,
    ", ", kind: Text,
    ", ", expires_at: Timestamptz,
    ") on conflict (seller_id, kind) do update set hash = excluded.hash, expires_at = excluded.expires_at");

impl<'a> Add<'a> {
    pub(super) fn new(link: &'a Link) -> Self {
        Self {
            hash: link.hash.bytes(),
            seller: link.seller.uuid(),
            kind: link.kind.as_str(),
            expires_at: link.expires_at,
        }
    }
}

/// Takes a link away that can be used, once its account is locked. Of two at once one finds it.
pub(super) struct Use<'a> {
    pub(super) hash: &'a [u8],
    pub(super) kind: &'static str,
}

statement!(Use<'_> => SellerColumns:
    "with given as materialized (select ", hash: Binary,
    "::bytea as hash, ", kind: Text,
    "::text as kind), \
     owner as materialized (select s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at \
       from given join links l on l.hash = given.hash and l.kind = given.kind and l.expires_at > (select api_now()) \
         join sellers s on s.id = l.seller_id where s.closed_at is null for no key update of s) \
     delete from links l using given, owner where l.hash = given.hash and l.seller_id = owner.id \
     returning owner.id, owner.seller_no, owner.name, owner.email, owner.created_at, owner.closed_at");

/// Reads a link that can be used.
pub(super) struct Read {
    pub(super) hash: Vec<u8>,
}

statement!(Read => (Text, Timestamptz, SellerColumns):
    "select l.kind, l.expires_at, s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at \
     from links l join sellers s on s.id = l.seller_id where l.hash = ", hash: Binary,
    " and l.expires_at > (select api_now()) and s.closed_at is null");

pub(super) fn link(
    hash: SecretHash,
    kind: &str,
    expires_at: DateTime<Utc>,
    seller: kernel::SellerId,
) -> Result<Link, StoreError> {
    Ok(Link {
        hash,
        kind: LinkKind::parse(kind)
            .ok_or_else(|| StoreError::corrupt("links", seller, format!("kind {kind:?}")))?,
        seller,
        expires_at,
    })
}
