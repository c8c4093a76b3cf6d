//! A request's place in its application's window, as headers and as a refusal (contract: Limits).

use oauth::Quota;
use web::Problem;
use web::reply::{RateLimit, WINDOW_SECONDS};

use crate::HttpSettings;

/// What a request that was counted is told.
pub(crate) fn counted(quota: &Quota) -> RateLimit {
    RateLimit {
        limit: quota.limit,
        remaining: quota.remaining(),
        reset: quota.resets_at.timestamp(),
        resets_in: whole_seconds(quota),
    }
}

/// What a request that was not counted is told: nothing of any application, only what a new one would see (D2).
pub(crate) fn uncounted(settings: &HttpSettings) -> RateLimit {
    let limit = settings.default_rate_limit.get();
    let now = settings.clock.now().timestamp();
    let window = i64::from(WINDOW_SECONDS);
    let left = window.saturating_sub(now.rem_euclid(window));
    RateLimit {
        limit,
        remaining: limit,
        reset: now.saturating_add(left),
        resets_in: u32::try_from(left).unwrap_or(WINDOW_SECONDS),
    }
}

/// Refuses a request beyond the limit.
pub(crate) fn admit(quota: &Quota) -> Result<(), Problem> {
    if quota.admits() {
        return Ok(());
    }
    Err(Problem::rate_limited(whole_seconds(quota)))
}

/// The value of `Retry-After`.
pub(crate) fn whole_seconds(quota: &Quota) -> u32 {
    u32::try_from(quota.retry_after()).unwrap_or(u32::MAX)
}
