//! The worker's loop: it starts attempts and store calls, and reacts to their ends.

use std::collections::BTreeSet;
use std::mem;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use kernel::StoreError;
use webhooks::{AttemptRecord, Attempted, ClaimedQueues, Lease, Refill, Refilled, Release, Sent};

use super::Dispatch;
use super::in_flight::{InFlight, Start};

/// For how many beats a stopping worker goes on while the store fails or does not answer, or queues are locked. Other
/// workers repeat attempts that it could not record.
const LAST_BEATS: u8 = 60;

/// The largest number of events handled before the next store call.
const MAX_BATCH: u8 = 128;

enum Step {
    Queued,
    Beat,
    Stop,
    Ended(Start, Sent),
    ClaimedQueues(Result<ClaimedQueues, StoreError>),
    /// With the leases whose queues are locked.
    Recorded(Recording, Result<BTreeSet<Lease>, StoreError>),
    Refilled(Vec<Refill>, Result<Vec<Refilled>, StoreError>),
}

/// The ends of attempts and the releases recorded in one transaction.
pub(super) struct Recording {
    pub(super) records: Vec<AttemptRecord>,
    pub(super) releases: Vec<Release>,
}

/// Store calls under way.
#[derive(Default)]
struct Calls {
    recording: bool,
    /// No claim begins during a refill, since each takes from the capacity; a refill may begin beside a claim.
    refilling: bool,
    /// Whether a claim has begun since the last refill that ran alone. They take turns, since either may go on for long.
    claimed_last: bool,
}

pub(super) struct Worker<'a> {
    dispatch: Dispatch<'a>,
    steps: FuturesUnordered<BoxFuture<'a, Step>>,
    in_flight: InFlight,
    calls: Calls,
    /// There may be queues to claim.
    may_claim: bool,
    /// There may be more deliveries in any leased queue.
    may_refill: bool,
    /// The store failed: no calls until the next beat.
    is_paused: bool,
    /// Set while the worker is stopping: the beats that are left to a store that fails, and to locked queues.
    stopping: Option<u8>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(dispatch: Dispatch<'a>, stop: impl Future<Output = ()> + Send + 'a) -> Self {
        let worker = Self {
            dispatch,
            steps: FuturesUnordered::new(),
            in_flight: InFlight::new(dispatch.slots),
            calls: Calls::default(),
            may_claim: true,
            may_refill: false,
            is_paused: false,
            stopping: None,
        };
        worker.begin(stop.map(|()| Step::Stop));
        worker.begin((dispatch.queued)().map(|()| Step::Queued));
        worker.begin((dispatch.beat)().map(|()| Step::Beat));
        worker
    }

    pub(super) async fn run(mut self) {
        while !self.is_done() {
            self.call_store();
            if let Some(step) = self.steps.next().await {
                self.handle(step);
            }
            // Other attempts that have ended by now go into the same recording.
            for _ in 0..MAX_BATCH {
                match self.steps.next().now_or_never() {
                    Some(Some(step)) => self.handle(step),
                    Some(None) | None => break,
                }
            }
        }
    }

    fn begin(&self, step: impl Future<Output = Step> + Send + 'a) {
        self.steps.push(step.boxed());
    }

    fn is_done(&self) -> bool {
        let idle = self.in_flight.is_empty() && !self.in_flight.is_claiming();
        self.stopping.is_some_and(|beats| idle || beats == 0)
    }

    fn call_store(&mut self) {
        if self.is_paused {
            return;
        }
        let takes = self.stopping.is_none();
        // Before the recording: a queue is refilled only while none of it is recorded.
        if takes && (self.calls.claimed_last || !self.may_claim) {
            self.refill();
        }
        self.record();
        if takes {
            self.claim();
            self.refill();
        }
    }

    fn record(&mut self) {
        if self.calls.recording {
            return;
        }
        if let Some(recording) = self.in_flight.next_recording() {
            self.calls.recording = true;
            let queues = self.dispatch.queues;
            self.begin(async move {
                let recorded = queues.record(&recording.records, &recording.releases).await;
                Step::Recorded(recording, recorded)
            });
        }
    }

    fn claim(&mut self) {
        if self.in_flight.is_claiming() || self.calls.refilling || !self.may_claim {
            return;
        }
        if let Some(capacity) = self.in_flight.begin_claim() {
            self.may_claim = false;
            self.calls.claimed_last = true;
            let (queues, fence) = (self.dispatch.queues, self.dispatch.randomness.uuid());
            self.begin(async move { Step::ClaimedQueues(queues.claim(fence, capacity).await) });
        }
    }

    fn refill(&mut self) {
        if self.calls.refilling {
            return;
        }
        // Beside a claim there is little to give: the refills' turn comes after it.
        let is_claiming = self.in_flight.is_claiming();
        let refills = self
            .in_flight
            .refills(!is_claiming && mem::take(&mut self.may_refill));
        if !refills.is_empty() {
            (self.calls.refilling, self.calls.claimed_last) = (true, is_claiming);
            let queues = self.dispatch.queues;
            self.begin(async move {
                let refilled = queues.refill(&refills).await;
                Step::Refilled(refills, refilled)
            });
        }
    }

    fn handle(&mut self, step: Step) {
        match step {
            Step::Queued => {
                self.may_claim = true;
                self.may_refill = true;
                self.begin((self.dispatch.queued)().map(|()| Step::Queued));
            }
            Step::Beat => {
                let waits = self.calls.recording || self.in_flight.only_waits();
                if mem::take(&mut self.is_paused) || waits {
                    self.stopping = self.stopping.map(|beats| beats.saturating_sub(1));
                }
                self.in_flight.beat();
                self.may_claim = true;
                self.may_refill = true;
                self.begin((self.dispatch.beat)().map(|()| Step::Beat));
            }
            Step::Stop => self.stopping = Some(LAST_BEATS),
            Step::Ended(start, Sent::Attempted(attempted)) => self.end(&start, attempted),
            Step::Ended(start, Sent::Postponed) => self.in_flight.postpone(&start),
            Step::ClaimedQueues(claimed) => {
                self.in_flight.end_claim();
                let Some(mut claimed) = self.or_pause(claimed) else {
                    return;
                };
                self.dispatch.observer.claimed(claimed.queues.len());
                for queue in mem::take(&mut claimed.queues) {
                    let starts = self.in_flight.add(queue);
                    self.start(starts);
                }
                self.may_claim |= self.in_flight.claimed(&claimed);
            }
            Step::Recorded(recording, recorded) => {
                self.calls.recording = false;
                self.recorded(recording, recorded);
            }
            Step::Refilled(refills, refilled) => {
                self.calls.refilling = false;
                let refilled = self.or_pause(refilled).unwrap_or_default();
                let starts = self.in_flight.refilled(&refills, refilled);
                self.start(starts);
            }
        }
    }

    fn recorded(&mut self, recording: Recording, recorded: Result<BTreeSet<Lease>, StoreError>) {
        let Some(locked) = self.or_pause(recorded) else {
            self.in_flight.not_recorded(recording);
            return;
        };
        self.may_claim |= self.in_flight.recorded(recording, &locked);
        if !self.in_flight.only_waits() {
            self.stopping = self.stopping.map(|_| LAST_BEATS);
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

    fn end(&mut self, start: &Start, attempted: Attempted) {
        let Dispatch {
            schedule,
            randomness,
            observer,
            ..
        } = self.dispatch;
        let [a, b, c, d, ..] = randomness.secret();
        let jitter = u32::from_be_bytes([a, b, c, d]);
        let (next, phase) = start.from.end(&attempted.outcome, &schedule, jitter);
        let record = AttemptRecord {
            lease: start.lease,
            delivery: start.delivery,
            from: start.from,
            duration_ms: attempted.duration_ms(),
            next,
            phase,
            outcome: attempted.outcome,
        };
        observer.ended(&record, start.message.as_ref());
        self.in_flight.end(record);
    }

    /// Reports a failure and pauses calls to the store.
    fn or_pause<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.dispatch.observer.succeeded();
                Some(value)
            }
            Err(error) => {
                self.is_paused = true;
                self.dispatch.observer.failed(error);
                None
            }
        }
    }
}
