//! What is counted beside requests: the decisions of rate limits, and what becomes of requests for tokens.

use metrics::Counter;

use crate::authorization_server::GrantOutcome;

const DECISIONS: &str = "rate_limit_decisions_total";

/// The decisions of one limit.
pub(crate) struct RateDecisions {
    admitted: Counter,
    refused: Counter,
}

impl RateDecisions {
    /// The meters of a limit, such as `api`.
    pub(crate) fn of(limit: &'static str) -> Self {
        Self {
            admitted: metrics::counter!(DECISIONS, "limit" => limit, "decision" => "admitted"),
            refused: metrics::counter!(DECISIONS, "limit" => limit, "decision" => "refused"),
        }
    }

    pub(crate) fn count(&self, admitted: bool) {
        if admitted {
            self.admitted.increment(1);
        } else {
            self.refused.increment(1);
        }
    }
}

/// The decisions of all limits, for one server thread.
pub(crate) struct Decisions {
    pub(crate) api: RateDecisions,
    pub(crate) token_by_address: RateDecisions,
    pub(crate) token_by_client: RateDecisions,
    pub(crate) authorize_by_address: RateDecisions,
}

impl Decisions {
    pub(crate) fn new() -> Self {
        Self {
            api: RateDecisions::of("api"),
            token_by_address: RateDecisions::of("token_by_address"),
            token_by_client: RateDecisions::of("token_by_client"),
            authorize_by_address: RateDecisions::of("authorize_by_address"),
        }
    }
}

/// Counts a call of the token endpoint by what was asked for and what came of it.
pub(crate) fn granted(GrantOutcome { grant_type, outcome }: GrantOutcome) {
    metrics::counter!("oauth_grants_total", "grant_type" => grant_type, "outcome" => outcome).increment(1);
}
