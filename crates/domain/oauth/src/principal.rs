//! The authenticated caller, and its remaining rate limit.

use chrono::{DateTime, Utc};
use kernel::{Reader, SellerId};

use crate::{ClientId, Scope, ScopeSet, TokenKey, TokenKind};

/// The caller of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub seller: SellerId,
    pub seller_no: i32,
    pub seller_name: String,
    pub client_id: ClientId,
    pub app_name: String,
    /// The effective scopes: the token's, intersected with the application's current ones.
    pub scopes: ScopeSet,
    pub kind: TokenKind,
    /// When the token expires; None for a personal token that does not expire.
    pub expires_at: Option<DateTime<Utc>>,
    pub token: TokenKey,
}

impl Principal {
    pub fn reader(&self) -> Reader {
        Reader {
            seller: self.seller,
            application: Some(self.client_id.uuid()),
        }
    }

    /// True if the token currently has the scope.
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}

/// A request's place in its application's window (contract: Limits), which is a clock minute of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Number of requests that the window admits.
    pub limit: u32,
    /// The request's place in the window, from 1.
    pub place: u64,
    /// When the window ends.
    pub resets_at: DateTime<Utc>,
    /// The database's time of the count.
    pub counted_at: DateTime<Utc>,
}

impl Quota {
    /// True if the request is within the limit.
    pub fn admits(&self) -> bool {
        self.place <= u64::from(self.limit)
    }

    /// Number of requests that the window still admits after this one.
    pub fn remaining(&self) -> u32 {
        let left = u64::from(self.limit).saturating_sub(self.place);
        u32::try_from(left).unwrap_or(self.limit)
    }

    /// Whole seconds until the end of the window, rounded up so that this wait suffices; at least 1.
    pub fn retry_after(&self) -> u32 {
        let left = (self.resets_at - self.counted_at).num_microseconds();
        let left = u64::try_from(left.unwrap_or(i64::MAX).max(1)).unwrap_or(1);
        u32::try_from(left.div_ceil(1_000_000)).unwrap_or(u32::MAX)
    }
}

/// The gate's result for a request with a live token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    pub principal: Principal,
    /// The request's place, which may exceed the limit.
    pub quota: Quota,
}

kernel::words! {
    /// Why an issued token is not live: the first cause that applies.
    pub enum TokenEnd {
        Expired = "expired",
        /// Its application is suspended.
        Suspended = "suspended",
        /// The account is closed, or that of the application's owner.
        Closed = "closed",
        Revoked = "revoked",
    }
}

/// An issued token that is not live, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadToken {
    pub seller: SellerId,
    pub client_id: ClientId,
    pub end: TokenEnd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_counts_itself_and_the_wait_is_rounded_up() {
        for (place, microseconds, remaining, admits, retry_after) in [
            (1, 60_000_000, 599, true, 60),
            (1, 59_001_000, 599, true, 60),
            (1, 1_000_001, 599, true, 2),
            (600, 1_000, 0, true, 1),
            (601, 0, 0, false, 1),
            (602, -5_000, 0, false, 1),
        ] {
            let counted_at = DateTime::<Utc>::UNIX_EPOCH;
            let quota = Quota {
                limit: 600,
                place,
                counted_at,
                resets_at: counted_at + chrono::TimeDelta::microseconds(microseconds),
            };
            let actual = (quota.remaining(), quota.admits(), quota.retry_after());
            assert_eq!(actual, (remaining, admits, retry_after), "{place}");
        }
    }
}
