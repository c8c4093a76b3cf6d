//! Sessions: who is signed in.

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{BigInt, Binary, Timestamptz},
};
use kernel::StoreError;
use oauth::{SESSION_IDLE, SESSION_LIFETIME, SecretHash, Session, SignedIn};

use crate::{
    accounts::{SellerColumns, SellerRow},
    statement::statement,
};

/// Looks a session up and notes its use where the last one was noted a minute ago or longer. That note does not wait for the
/// disk: lost in a crash, it ends the session a minute early.
pub(super) struct LookUp {
    hash: Vec<u8>,
    idle: i64,
    lifetime: i64,
}

statement!(LookUp => (SellerColumns, Timestamptz, Timestamptz, Timestamptz):
    "with clock as materialized (select at, mode \
       from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
     living as materialized (select e.hash, e.created_at, e.seen_at, s.id, s.seller_no, s.name, s.email, \
         s.created_at as registered_at, s.closed_at \
       from clock cross join sessions e join sellers s on s.id = e.seller_id where e.hash = ", hash: Binary,
    " and e.seen_at > clock.at - ", idle: BigInt,
    " * interval '1 microsecond' and e.created_at > clock.at - ", lifetime: BigInt,
    " * interval '1 microsecond' and s.closed_at is null), \
     touched as (update sessions e set seen_at = clock.at from clock cross join living l \
       where e.hash = l.hash and e.seen_at <= clock.at - interval '1 minute' returning e.seen_at) \
     select l.id, l.seller_no, l.name, l.email, l.registered_at, l.closed_at, l.created_at, \
       coalesce((select seen_at from touched), l.seen_at), clock.at from living l cross join clock");

impl LookUp {
    pub(super) fn new(session: &SecretHash) -> Self {
        Self {
            hash: session.bytes().to_vec(),
            idle: SESSION_IDLE.num_microseconds().unwrap_or(i64::MAX),
            lifetime: SESSION_LIFETIME.num_microseconds().unwrap_or(i64::MAX),
        }
    }
}

#[derive(Queryable)]
pub(super) struct SignedInRow {
    seller: SellerRow,
    created_at: DateTime<Utc>,
    seen_at: DateTime<Utc>,
    now: DateTime<Utc>,
}

impl SignedInRow {
    pub(super) fn signed_in(self, hash: SecretHash) -> Result<SignedIn, StoreError> {
        let seller = oauth::Seller::try_from(self.seller)?;
        let session = Session {
            hash,
            seller: seller.id,
            created_at: self.created_at,
            seen_at: self.seen_at,
        };
        Ok(SignedIn {
            seller,
            session,
            now: self.now,
        })
    }
}
