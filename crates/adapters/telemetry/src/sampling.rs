//! Which traces are recorded.
//!
//! Who calls decides only where its word counts: a stranger who may have everything recorded could make a busy service's
//! collector drown, and one who may choose ids that are recorded, too. So the share of the traces of our own and of strangers is
//! drawn by a hash of their ids whose key nobody knows.

use std::hash::{BuildHasher, RandomState};

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};
use web::traceparent::Unvouched;

/// A share of the traces that begin here or with strangers; others as they were decided where they began.
#[derive(Clone, Debug)]
pub(crate) struct OwnShare {
    ratio: f64,
    key: RandomState,
}

impl OwnShare {
    /// This share, from 0 to 1.
    pub(crate) fn of(ratio: f64) -> Self {
        Self {
            ratio,
            key: RandomState::new(),
        }
    }

    fn draws(&self, trace: TraceId) -> bool {
        let place = u32::try_from(self.key.hash_one(trace.to_bytes()) >> 32).unwrap_or_default();
        f64::from(place) / f64::from(u32::MAX) < self.ratio || self.ratio >= 1.0
    }

    fn takes(&self, parent: Option<&Context>, trace: TraceId) -> bool {
        let Some(context) = parent else {
            return self.draws(trace);
        };
        let span = context.span();
        let parent = span.span_context();
        let is_strangers = parent.is_remote() && context.get::<Unvouched>().is_some();
        if parent.is_valid() && !is_strangers {
            parent.is_sampled()
        } else {
            self.draws(trace)
        }
    }
}

impl ShouldSample for OwnShare {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        _: &str,
        _: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        SamplingResult {
            decision: if self.takes(parent, trace) {
                SamplingDecision::RecordAndSample
            } else {
                SamplingDecision::Drop
            },
            attributes: Vec::new(),
            trace_state: TraceState::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags};

    use super::*;

    fn id(n: u128) -> TraceId {
        TraceId::from_bytes(n.to_be_bytes())
    }

    fn under(trace: TraceId, flags: TraceFlags, is_remote: bool) -> Context {
        let span = SpanId::from_bytes([7; 8]);
        let parent = SpanContext::new(trace, span, flags, is_remote, TraceState::NONE);
        Context::new().with_remote_span_context(parent)
    }

    #[test]
    fn all_none_or_a_share_of_our_own() {
        let taken = |ratio| {
            let share = OwnShare::of(ratio);
            (1..=10_000)
                .filter(|n| share.takes(Some(&Context::new()), id(*n)))
                .count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 10_000));
        assert!((2_000..3_000).contains(&taken(0.25)));
    }

    #[test]
    fn what_hangs_under_something_is_recorded_as_that_is() {
        for is_remote in [true, false] {
            let (none, all) = (OwnShare::of(0.0), OwnShare::of(1.0));
            assert!(none.takes(Some(&under(id(1), TraceFlags::SAMPLED, is_remote)), id(1)));
            assert!(!all.takes(Some(&under(id(1), TraceFlags::NOT_SAMPLED, is_remote)), id(1)));
        }
    }

    #[test]
    fn strangers_decide_nothing_neither_by_the_flag_nor_by_the_id() {
        let strangers = |trace, flags| under(trace, flags, true).with_value(Unvouched);
        let sampled = strangers(id(1), TraceFlags::SAMPLED);
        assert!(!OwnShare::of(0.0).takes(Some(&sampled), id(1)));
        let unsampled = strangers(id(1), TraceFlags::NOT_SAMPLED);
        assert!(OwnShare::of(1.0).takes(Some(&unsampled), id(1)));
        // Of processes with keys of their own each draws its own share of the same ids.
        let drawn = (0..64)
            .filter(|_| OwnShare::of(0.5).takes(Some(&sampled), id(1)))
            .count();
        assert!((1..64).contains(&drawn));
    }

    #[test]
    fn within_a_strangers_trace_all_is_recorded_or_nothing() {
        let child = under(id(1), TraceFlags::SAMPLED, false).with_value(Unvouched);
        assert!(OwnShare::of(0.0).takes(Some(&child), id(1)));
    }
}
