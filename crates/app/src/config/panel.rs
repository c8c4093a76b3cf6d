//! `panel.*`: how many attempts to sign in the panel lets through, and how much it hashes at a time.

use std::time::Duration;

use adapter_sealing::HashingBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use usecases::sign_in::AttemptLimits;

use super::values::Period;

/// The highest number of attempts a minute that can be let through.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// The longest delay: browsers give up soon after it.
const DELAY_MAX: Duration = Duration::from_secs(30);
const AT_A_TIME_MAX: u16 = 512;

/// `panel.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PanelConfig {
    /// Attempts a minute, from one address, to sign in, to change a password or to have one reset. Those beyond are refused.
    #[schemars(extend("x-range" = "from 1 to 1000000"))]
    pub sign_in_limit_per_ip: u32,
    /// The same for one account: those beyond are not refused, but wait, each a second longer than the one before it. So an
    /// account that is attacked is slow, and its owner is never locked out.
    #[schemars(extend("x-range" = "from 1 to 1000000"))]
    pub sign_in_undelayed_per_account: u32,
    /// The longest that such an attempt waits.
    #[schemars(extend("x-range" = "from 0s to 30s"))]
    pub sign_in_longest_delay: Period,
    /// Passwords that one process hashes at a time; each takes 19 MiB and a core for tens of milliseconds.
    #[schemars(extend("x-range" = "from 1 to 512"))]
    pub password_hashes_at_a_time: u16,
    /// Passwords that wait to be hashed. Whoever comes when as many wait is told at once to try again in a moment (503).
    #[schemars(extend("x-range" = "from 0 to 65535"))]
    pub password_hashes_waiting: u16,
}

impl Default for PanelConfig {
    fn default() -> Self {
        Self {
            sign_in_limit_per_ip: 30,
            sign_in_undelayed_per_account: 5,
            sign_in_longest_delay: Period(Duration::from_secs(10)),
            password_hashes_at_a_time: 2,
            password_hashes_waiting: 64,
        }
    }
}

impl PanelConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        for (key, limit) in [
            ("panel.sign_in_limit_per_ip", self.sign_in_limit_per_ip),
            (
                "panel.sign_in_undelayed_per_account",
                self.sign_in_undelayed_per_account,
            ),
        ] {
            if !(1..=ATTEMPTS_MAX).contains(&limit) {
                problems.push((key, format!("must be from 1 to {ATTEMPTS_MAX}")));
            }
        }
        if self.sign_in_longest_delay.0 > DELAY_MAX {
            let rule = "must be from 0s to 30s".to_owned();
            problems.push(("panel.sign_in_longest_delay", rule));
        }
        if !(1..=AT_A_TIME_MAX).contains(&self.password_hashes_at_a_time) {
            let rule = format!("must be from 1 to {AT_A_TIME_MAX}");
            problems.push(("panel.password_hashes_at_a_time", rule));
        }
        problems
    }

    /// What the panel is given of it.
    pub(crate) fn attempts(&self) -> AttemptLimits {
        AttemptLimits {
            per_address: self.sign_in_limit_per_ip,
            undelayed_per_account: self.sign_in_undelayed_per_account,
            longest_delay: self.sign_in_longest_delay.0,
        }
    }

    /// What the hasher is given of it.
    pub(crate) fn hashing(&self) -> HashingBounds {
        HashingBounds {
            at_a_time: self.password_hashes_at_a_time.into(),
            waiting: self.password_hashes_waiting.into(),
        }
    }
}
