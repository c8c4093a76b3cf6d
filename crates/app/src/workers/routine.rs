//! The loop of every worker: a batch, then a pause, until the process stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::{Randomness, StoreError, TransactionError, error_chain};
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use web::{Panicked, Tasks};

/// The pause after a first failure; it doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// By then the readiness check has noticed an outage.
const CHECKED_WITHIN: Duration = Duration::from_secs(3);

/// Runs batches until the process stops; a batch in progress is finished first. `batch` runs one, and returns
/// how long to wait before the next one. Several processes may do the same at once. Each batch is a separate
/// task: if one panics, that is logged, and the next one follows.
pub(super) async fn run_routine<S, F>(
    mut streak: FailureStreak,
    state: S,
    batch: impl Fn(S) -> F,
    tasks: Tasks,
    randomness: Arc<dyn Randomness>,
) where
    S: Clone,
    F: Future<Output = Result<Duration, TransactionError>> + Send + 'static,
{
    loop {
        let pause = match or_panic(tasks.run(batch(state.clone())).await) {
            Ok(pause) => {
                streak.log_recovery();
                pause
            }
            Err(error) => streak.log_failure(&error),
        };
        select! {
            biased;
            () = tasks.stopping() => return,
            () = sleep(with_jitter(pause, &*randomness)) => {}
        }
    }
}

/// What the work returned, or its panic as a failure.
fn or_panic<T>(ended: Result<Result<T, TransactionError>, Panicked>) -> Result<T, TransactionError> {
    ended.unwrap_or_else(|panicked| Err(StoreError::unexpected(panicked).into()))
}

/// From half the pause to one and a half, so that processes started together do not stay in step.
fn with_jitter(pause: Duration, randomness: &dyn Randomness) -> Duration {
    let [chance, ..] = randomness.secret();
    pause / 2 + pause * u32::from(chance) / 255
}

/// The slots of a routine whose batch begins a single item. Each item has a task of its own, so that a slow
/// one delays no other, and none is leased before a slot is free for it.
pub(super) struct TaskSlots {
    free: Arc<Semaphore>,
    tasks: Tasks,
    /// An item's failure that no batch has returned yet.
    failure: Arc<Mutex<Option<TransactionError>>>,
}

impl TaskSlots {
    /// Slots that may be shared with other routines. Who waits longest gets the next one.
    pub(super) fn of(free: &Arc<Semaphore>, tasks: &Tasks) -> Self {
        Self {
            free: Arc::clone(free),
            tasks: tasks.clone(),
            failure: Arc::default(),
        }
    }

    /// Waits for a slot; `None` once the process stops. Returns the failure of an item that was begun before.
    pub(super) async fn free(&self) -> Result<Option<OwnedSemaphorePermit>, TransactionError> {
        let slot = select! {
            biased;
            () = self.tasks.stopping() => None,
            slot = Arc::clone(&self.free).acquire_owned() => slot.ok(),
        };
        let failure = self.failure.lock().take();
        failure.map_or(Ok(slot), Err)
    }

    /// Begins an item, which has its slot until it ends.
    pub(super) fn begin(
        &self,
        slot: OwnedSemaphorePermit,
        work: impl Future<Output = Result<(), TransactionError>> + Send + 'static,
    ) {
        let (failure, work) = (Arc::clone(&self.failure), self.tasks.run(work));
        drop(self.tasks.run(async move {
            if let Err(error) = or_panic(work.await) {
                *failure.lock() = Some(error);
            }
            drop(slot);
        }));
    }
}

fn is_outage(error: &TransactionError) -> bool {
    matches!(error, TransactionError::Store(StoreError::Unavailable(_)))
}

/// Consecutive failures.
pub(super) struct FailureStreak {
    /// The name in the log.
    worker: &'static str,
    /// Which of several workers of this name it is.
    step: Option<String>,
    failures: u32,
    began_at: Option<Instant>,
    last_at: Option<Instant>,
    is_logged: bool,
    /// Whether what was logged last was an outage.
    logged_outage: bool,
    /// Whether the process is ready.
    ready: Arc<AtomicBool>,
}

impl FailureStreak {
    pub(super) fn new(worker: &'static str, step: Option<String>, ready: Arc<AtomicBool>) -> Self {
        Self {
            worker,
            step,
            failures: 0,
            began_at: None,
            last_at: None,
            is_logged: false,
            logged_outage: false,
            ready,
        }
    }

    /// Logs the first failure of a streak, and the first other cause after an outage; returns the pause after it.
    pub(super) fn log_failure(&mut self, error: &TransactionError) -> Duration {
        let (worker, step, cause) = (self.worker, self.step.as_deref(), error_chain(error));
        if !self.counts(error) {
            tracing::debug!(worker, step, cause, "a worker waits for the database");
            return self.next_pause();
        }
        metrics::counter!("worker_failures_total", "worker" => worker).increment(1);
        let is_outage = is_outage(error);
        if self.is_logged && (is_outage || !self.logged_outage) {
            tracing::debug!(worker, step, cause, "a worker fails again");
        } else {
            tracing::warn!(worker, step, cause, "a worker failed: it retries");
            (self.is_logged, self.logged_outage) = (true, is_outage);
        }
        self.next_pause()
    }

    /// Failures during an outage do not count: the readiness check logs it, and `/readyz` and its alert
    /// report it. A worker's first may precede that check. A statement that always times out counts: the
    /// process is ready.
    fn counts(&self, error: &TransactionError) -> bool {
        let is_checked = self
            .began_at
            .is_some_and(|began_at| began_at.elapsed() >= CHECKED_WITHIN);
        !is_outage(error) || is_checked && self.ready.load(Ordering::Relaxed)
    }

    fn next_pause(&mut self) -> Duration {
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        self.began_at.get_or_insert_with(Instant::now);
        self.last_at = Some(Instant::now());
        pause.min(LONGEST_PAUSE)
    }

    /// For a worker whose calls may fail beside others that succeed: what was logged is over once nothing has failed for
    /// a while.
    pub(super) fn log_success(&mut self) {
        let is_over = self
            .last_at
            .is_none_or(|last_at| last_at.elapsed() >= LONGEST_PAUSE);
        if is_over || !self.is_logged {
            self.log_recovery();
        }
    }

    pub(super) fn log_recovery(&mut self) {
        self.failures = 0;
        self.began_at = None;
        if std::mem::take(&mut self.is_logged) {
            tracing::info!(worker = self.worker, step = self.step, "a worker works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use adapter_sealing::SystemRandomness;
    use kernel::MockRandomness;
    use tokio::{runtime::Handle, sync::Notify, time::timeout};

    use super::*;

    #[tokio::test]
    async fn an_item_keeps_its_slot_and_the_next_batch_returns_its_failure() {
        let tasks = Tasks::new(Handle::current());
        let slots = TaskSlots::of(&Arc::new(Semaphore::new(1)), &tasks);
        let ends = Arc::new(Notify::new());
        let ended = Arc::clone(&ends);
        let slot = slots.free().await.unwrap().unwrap();
        slots.begin(slot, async move {
            ended.notified().await;
            Err(StoreError::Retryable("deadlock".into()).into())
        });
        assert!(timeout(Duration::ZERO, slots.free()).await.is_err());
        ends.notify_one();
        assert!(slots.free().await.is_err());
        slots.begin(slots.free().await.unwrap().unwrap(), async { panic!("failing") });
        assert!(slots.free().await.is_err());
        assert!(slots.free().await.unwrap().is_some());
        tasks.stop();
        assert!(slots.free().await.unwrap().is_none());
    }

    /// Panics, then fails, then succeeds; signals its third batch.
    #[derive(Default)]
    struct Failing {
        batches: AtomicUsize,
        third: Notify,
    }

    async fn fail(failing: Arc<Failing>) -> Result<Duration, TransactionError> {
        match failing.batches.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("failing"),
            1 => Err(StoreError::unexpected("failing").into()),
            _ => {
                failing.third.notify_one();
                Ok(Duration::from_hours(1))
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_or_a_failure_does_not_end_a_routine_but_a_stop_does() {
        let tasks = Tasks::new(Handle::current());
        let failing = Arc::new(Failing::default());
        let randomness = Arc::new(SystemRandomness::new());
        let streak = FailureStreak::new("failing", None, Arc::default());
        let running = run_routine(streak, Arc::clone(&failing), fail, tasks.clone(), randomness);
        drop(tasks.run(running));
        failing.third.notified().await;
        tasks.stop();
        let drained = timeout(Duration::from_secs(1), tasks.drained()).await;
        assert!(drained.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_of_which_one_call_fails_again_and_again_does_not_work_again() {
        let mut streak = FailureStreak::new("failing", None, Arc::default());
        let failing = TransactionError::Store(StoreError::unexpected("failing"));
        for _ in 0..3 {
            streak.log_failure(&failing);
            tokio::time::advance(LONGEST_PAUSE / 2).await;
            streak.log_success();
            assert!(streak.is_logged);
        }
        tokio::time::advance(LONGEST_PAUSE / 2).await;
        streak.log_success();
        assert!(!streak.is_logged);
    }

    #[test]
    fn pauses_double_up_to_a_bound_until_a_success_and_have_jitter() {
        let mut streak = FailureStreak::new("failing", None, Arc::default());
        let pauses = [(); 7].map(|()| streak.next_pause().as_secs());
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        streak.log_recovery();
        assert_eq!(streak.next_pause(), FIRST_PAUSE);
        let seconds = |byte| {
            let mut randomness = MockRandomness::new();
            randomness.expect_secret().returning(move || [byte; 32]);
            with_jitter(Duration::from_secs(10), &randomness).as_secs()
        };
        assert_eq!([seconds(0), seconds(255)], [5, 15]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_an_outage_do_not_count_unless_the_process_is_ready() {
        let ready = Arc::new(AtomicBool::new(true));
        let mut streak = FailureStreak::new("failing", None, Arc::clone(&ready));
        let away = TransactionError::Store(StoreError::Unavailable("away".into()));
        let other = TransactionError::Store(StoreError::unexpected("failing"));
        assert!(!streak.counts(&away) && streak.counts(&other));
        // However many fail at once.
        for _ in 0..20 {
            streak.next_pause();
            assert!(!streak.counts(&away));
        }
        sleep(CHECKED_WITHIN).await;
        assert!(streak.counts(&away));
        // One that precedes another cause does not hide it.
        for (error, logged_outage) in [(&away, true), (&other, false), (&away, false)] {
            streak.log_failure(error);
            assert_eq!(streak.logged_outage, logged_outage);
        }
        ready.store(false, Ordering::Relaxed);
        assert!(!streak.counts(&away) && streak.counts(&other));
    }
}
