//! The worker: what is under way, and what follows when it has come to its end.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use kernel::{Randomness, StoreError};
use webhooks::{Attempted, Claimed, Conclusion, Fate, Release, Sent, TopUp, ToppedUp};

use super::Dispatch;
use super::holdings::{Holdings, Start};

/// How often the worker, asked to stop, tries to record what has ended while the store fails. What it cannot record is
/// repeated by others.
const LAST_TRIES: u8 = 3;

/// How many ends are gathered at most before the store hears of them.
const GATHERED: u8 = 128;

/// Something that was under way has come to its end.
enum Step {
    Beat,
    Stop,
    Ended(Start, Sent),
    Claimed(Result<Claimed, StoreError>),
    Settled(Settlement, Result<(), StoreError>),
    ToppedUp(Vec<TopUp>, Result<Vec<ToppedUp>, StoreError>),
}

/// What is recorded in one go.
pub(super) struct Settlement {
    pub(super) conclusions: Vec<Conclusion>,
    pub(super) releases: Vec<Release>,
}

/// Which calls of the store are under way.
#[derive(Default)]
struct UnderWay {
    claim: bool,
    settlement: bool,
    top_up: bool,
}

/// A worker, from its start to its end.
pub(super) struct Worker<'a> {
    dispatch: Dispatch<'a>,
    steps: FuturesUnordered<BoxFuture<'a, Step>>,
    holdings: Holdings,
    under_way: UnderWay,
    /// There may be lanes to claim.
    looks_for_lanes: bool,
    /// There may be more to do in any lane that is held.
    looks_into_lanes: bool,
    /// The store failed; it is left alone until the next beat.
    waits: bool,
    /// How often recording may still fail, once the worker is to stop.
    stopping: Option<u8>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(dispatch: Dispatch<'a>, asked_to_stop: impl Future<Output = ()> + Send + 'a) -> Self {
        let worker = Self {
            dispatch,
            steps: FuturesUnordered::new(),
            holdings: Holdings::new(dispatch.slots),
            under_way: UnderWay::default(),
            looks_for_lanes: true,
            looks_into_lanes: false,
            waits: false,
            stopping: None,
        };
        worker.begin(asked_to_stop.map(|()| Step::Stop));
        worker.begin(dispatch.pulse.beat().map(|()| Step::Beat));
        worker
    }

    /// Works until it is stopped and done.
    pub(super) async fn work(mut self) {
        while !self.is_done() {
            self.store();
            if let Some(step) = self.steps.next().await {
                self.take(step);
            }
            // What else is there already goes with the same settlement.
            for _ in 0..GATHERED {
                match self.steps.next().now_or_never() {
                    Some(Some(step)) => self.take(step),
                    Some(None) | None => break,
                }
            }
        }
    }

    fn begin(&self, step: impl Future<Output = Step> + Send + 'a) {
        self.steps.push(step.boxed());
    }

    fn is_done(&self) -> bool {
        let idle = self.holdings.is_empty() && !self.under_way.claim;
        self.stopping.is_some_and(|tries| idle || tries == 0)
    }

    /// Calls the store for whatever is to be had from it now.
    fn store(&mut self) {
        if self.waits {
            return;
        }
        self.settle();
        if self.stopping.is_none() {
            self.claim();
            self.top_up();
        }
    }

    fn settle(&mut self) {
        if self.under_way.settlement {
            return;
        }
        if let Some(settlement) = self.holdings.settlement() {
            self.under_way.settlement = true;
            let lanes = self.dispatch.lanes;
            self.begin(async move {
                let settled = lanes.settle(&settlement.conclusions, &settlement.releases).await;
                Step::Settled(settlement, settled)
            });
        }
    }

    fn claim(&mut self) {
        if self.under_way.claim || !self.looks_for_lanes {
            return;
        }
        if let Some(room) = self.holdings.room_for_claim() {
            self.looks_for_lanes = false;
            self.under_way.claim = true;
            let (lanes, fence) = (self.dispatch.lanes, self.dispatch.randomness.uuid());
            self.begin(async move { Step::Claimed(lanes.claim(fence, room).await) });
        }
    }

    /// Lanes that wait come first: whoever holds one gets no more while others may get nothing.
    fn top_up(&mut self) {
        if self.under_way.claim || self.under_way.top_up {
            return;
        }
        let held = self.holdings.top_ups(self.looks_into_lanes);
        self.looks_into_lanes = false;
        if !held.is_empty() {
            self.under_way.top_up = true;
            let lanes = self.dispatch.lanes;
            self.begin(async move {
                let topped_up = lanes.top_up(&held).await;
                Step::ToppedUp(held, topped_up)
            });
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Beat => {
                self.waits = false;
                self.looks_for_lanes = true;
                self.looks_into_lanes = true;
                self.begin(self.dispatch.pulse.beat().map(|()| Step::Beat));
            }
            Step::Stop => self.stopping = Some(LAST_TRIES),
            Step::Ended(start, Sent::Attempted(attempted)) => self.conclude(&start, attempted),
            Step::Ended(start, Sent::Postponed) => self.holdings.postpone(&start),
            Step::Claimed(claimed) => {
                self.under_way.claim = false;
                let Some(Claimed {
                    lanes,
                    set_aside,
                    more,
                }) = self.or_wait(claimed)
                else {
                    return;
                };
                // What is set aside hides nobody any longer.
                self.looks_for_lanes |= more || set_aside > 0;
                for lane in lanes {
                    let starts = self.holdings.take(lane);
                    self.start(starts);
                }
            }
            Step::Settled(settlement, settled) => {
                self.under_way.settlement = false;
                self.settled(settlement, settled);
            }
            Step::ToppedUp(asked, topped_up) => {
                self.under_way.top_up = false;
                let topped_up = self.or_wait(topped_up).unwrap_or_default();
                let starts = self.holdings.topped_up(&asked, topped_up);
                self.start(starts);
            }
        }
    }

    fn settled(&mut self, settlement: Settlement, settled: Result<(), StoreError>) {
        if self.or_wait(settled).is_some() {
            self.looks_for_lanes |= self.holdings.settled(&settlement);
        } else {
            self.holdings.unsettled(settlement);
            self.stopping = self.stopping.map(|tries| tries.saturating_sub(1));
        }
    }

    fn start(&self, starts: Vec<Start>) {
        let sender = self.dispatch.sender;
        for start in starts {
            self.begin(async move {
                let sent = match &start.message {
                    Some(message) => sender.send(message).await,
                    None => Sent::Attempted(Start::lost()),
                };
                Step::Ended(start, sent)
            });
        }
    }

    fn conclude(&mut self, start: &Start, attempted: Attempted) {
        let Dispatch {
            schedule,
            randomness,
            observer,
            ..
        } = self.dispatch;
        let jitter = if attempted.outcome.is_success() {
            0.0
        } else {
            jitter(randomness)
        };
        let number = start.attempt.saturating_add(1);
        let conclusion = Conclusion {
            hold: start.hold,
            delivery: start.delivery,
            attempt: start.attempt,
            duration_ms: attempted.duration_ms(),
            fate: Fate::after(number, &attempted.outcome, &schedule, jitter),
            outcome: attempted.outcome,
        };
        observer.ended(&conclusion);
        self.holdings.conclude(conclusion);
    }

    /// The value, or nothing after the failure was told; the store then has a pause.
    fn or_wait<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.waits = true;
                self.dispatch.observer.failed(error);
                None
            }
        }
    }
}

/// A random number from 0 to 1.
fn jitter(randomness: &dyn Randomness) -> f64 {
    let [a, b, c, d, ..] = randomness.secret();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
