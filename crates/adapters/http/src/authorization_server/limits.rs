//! How often the token endpoint may be called (contract: Limits).

use oauth::{Limiter, RateCounter, Subject};

use super::error::OAuthError;
use crate::deadline::Deadline;

/// Counts a call and refuses it beyond `limit` a minute. A call that could not be counted does not go on.
pub(super) async fn pass(
    rates: &dyn RateCounter,
    (limiter, subject): (Limiter, Subject),
    limit: u32,
    deadline: Deadline,
) -> Result<(), OAuthError> {
    let quota = deadline
        .hold(rates.count(limiter, subject))
        .await??
        .against(limit);
    if quota.admits() {
        Ok(())
    } else {
        Err(OAuthError::rate_limited(&quota))
    }
}
