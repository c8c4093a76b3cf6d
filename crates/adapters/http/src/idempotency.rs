//! Idempotency keys (contract: Idempotency).

use crate::operation::Effect;

/// Claims the key of a request that writes. No operation under `/v1` writes yet, so that there is nothing to claim: the
/// step stands at its place in the pipeline and lets everything through.
pub(crate) const fn claim(_effect: Effect) {}
