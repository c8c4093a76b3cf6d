//! Runs a case with each fault at each of its statements and checks the result.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use blackbox::{World, lock_waits, until};
use chrono::TimeDelta;
use testkit::{
    Answer, Fault, Request, Rewrite, ServerOptions, Statement, StatementProxy, TestClock, TestDatabase,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::PROGRAM;
use crate::faulty_server::{FaultyServer, settings, through};
use crate::footprint::{FOOTPRINT, Footprint, NEVER, difference};

/// The faults of a request. [`Fault::Waits`] lets others act in the middle of the request.
const FAULTS: [Fault; 6] = [
    Fault::FailsBefore,
    Fault::FailsAfter,
    Fault::NeverArrives,
    Fault::AnswerLost,
    Fault::ProcessDies,
    Fault::Waits,
];
/// Longer than the lease of an idempotency key.
const LEASE: TimeDelta = TimeDelta::seconds(61);
/// Maximum time for the other request while a statement's answer waits.
const OVERTAKING: Duration = Duration::from_secs(10);
/// Time for a request to reach each of its statements.
const REACHED: Duration = Duration::from_secs(20);
/// Number of tries for a run whose statement does not come.
const TRIES: usize = 3;
/// The members of a batch.
const BATCH: i64 = 5;
/// The readiness probe's statements have one of these, independently of requests.
const PROBED: [&str; 2] = ["__diesel_schema_migrations", "pg_control_system"];
/// Maximum number of times that a client sends a request.
const REPEATS: usize = 8;

/// The error describes the violation.
pub(crate) type Verdict = Result<(), String>;

/// A request and its invariants.
pub(crate) trait Case {
    /// The request's data, fresh for each run.
    type Subject;

    /// Whether the request has an idempotency key.
    fn is_keyed(&self) -> bool {
        false
    }

    /// The number of statements of its batch before the one that saves it.
    const READS_OF_BATCH: usize = 0;

    /// Bytes that are sent for this request alone, with the last statement before its batch and with the one
    /// that saves the batch: for [`Rig::check_batch`], if it has no idempotency key.
    fn marks(&self, subject: &Self::Subject) -> [Vec<u8>; 2] {
        let _ = subject;
        [Vec::new(), Vec::new()]
    }

    async fn prepare(&self, world: &World) -> Self::Subject;

    /// The request to the world's server. A client repeats it until it gets an answer.
    fn request(&self, world: &World, subject: &Self::Subject) -> Request;

    /// Checks what the footprint does not cover.
    async fn judge(&self, world: &World, played: &Played<'_, Self::Subject>) -> Verdict {
        let _ = world;
        match played.answer.status {
            200..=204 => Ok(()),
            _ => Err(format!("the last answer is {:?}", played.answer)),
        }
    }
}

/// The result of a run.
pub(crate) struct Played<'a, S> {
    pub(crate) subject: &'a S,
    /// `None` in a run without a fault.
    pub(crate) fault: Option<Fault>,
    /// The answer with which the client stopped.
    pub(crate) answer: Answer,
    /// How often the client had sent the request by then.
    pub(crate) sent: usize,
}

/// A request's data and its idempotency key.
struct Run<S> {
    subject: S,
    key: Option<String>,
}

impl<S> Run<S> {
    fn keyed(&self, request: Request) -> Request {
        match &self.key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        }
    }
}

/// Two servers over one database: one with faults, and the world's own.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) clock: TestClock,
    faulty: FaultyServer,
    /// Replaces the server with faults after it was killed. It starts while earlier faults are played.
    spare: Option<JoinHandle<FaultyServer>>,
    rewrite: Option<Rewrite>,
    /// Of the world's own server, if statements are rewritten.
    _own_proxy: StatementProxy,
    inspector: tokio_postgres::Client,
    keys: AtomicU32,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::with(None, |options| options).await
    }

    pub(crate) async fn with(
        rewrite: Option<Rewrite>,
        more: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let database = TestDatabase::create().await;
        let own_proxy = StatementProxy::rewriting(&database, rewrite);
        let world = World::over(PROGRAM, database, |options| match rewrite {
            None => more(settings(options)),
            Some(_) => through(more(settings(options)), &own_proxy),
        })
        .await;
        let clock = world.database.control_clock().await;
        Self {
            faulty: FaultyServer::start(&world, rewrite).await.unwrap(),
            spare: None,
            inspector: world.database.connect().await,
            rewrite,
            keys: AtomicU32::new(0),
            world,
            clock,
            _own_proxy: own_proxy,
        }
    }

    /// Whether a rewritten statement has passed.
    pub(crate) fn has_rewritten(&self) -> bool {
        self.faulty.proxy.has_rewritten()
    }

    /// Runs a case with each fault at each of its statements.
    pub(crate) async fn check<C: Case>(&mut self, case: &C) -> Verdict {
        let (footprint, statements) = self.statements(case).await?;
        at_each(&statements, &FAULTS, async |statement, fault| {
            self.spare
                .get_or_insert_with(|| FaultyServer::start(&self.world, self.rewrite));
            self.play(case, statement, fault, &footprint).await
        })
        .await
    }

    /// The footprint of a run without a fault, and its statements.
    async fn statements<C: Case>(&mut self, case: &C) -> Result<(Footprint, Vec<Statement>), String> {
        // The first run also prepares statements and opens connections.
        self.run_undisturbed(case).await?;
        let (footprint, once) = self.run_undisturbed(case).await?;
        let (_, again) = self.run_undisturbed(case).await?;
        // Statements that the process sends independently of the request are left out.
        let is_probe = |one: &Statement| PROBED.iter().any(|probed| one.sql.contains(probed));
        let is_own = |one: &Statement| again.contains(one) && !is_probe(one);
        let statements: Vec<_> = once.into_iter().filter(is_own).collect();
        assert!(!statements.is_empty(), "the case sends no statement");
        Ok((footprint, statements))
    }

    async fn run_undisturbed<C: Case>(&mut self, case: &C) -> Result<(Footprint, Vec<Statement>), String> {
        let (run, before) = (self.run(case).await, self.footprint().await);
        self.faulty.proxy.record();
        let answer = run.keyed(self.request(case, &run.subject)).try_send().await;
        let statements = self.faulty.proxy.recorded();
        let played = Played {
            subject: &run.subject,
            fault: None,
            answer: answer.map_err(|error| error.to_string())?,
            sent: 1,
        };
        case.judge(&self.world, &played).await?;
        Ok((difference(&before, &self.footprint().await), statements))
    }

    /// Runs a case once; false if the statement did not come, or was not overtaken.
    async fn play<C: Case>(
        &mut self,
        case: &C,
        statement: &Statement,
        fault: Fault,
        expected: &Footprint,
    ) -> Result<bool, String> {
        let (run, before) = (self.run(case).await, self.footprint().await);
        self.faulty.proxy.arm(statement, fault);
        let first = run.keyed(self.request(case, &run.subject));
        let answers = if fault == Fault::Waits {
            let again = run.keyed(case.request(&self.world, &run.subject));
            self.overtaken(first, again, LEASE).await
        } else {
            let answers = first.try_send().await.into_iter().collect();
            (!self.faulty.proxy.disarm()).then_some(answers)
        };
        let Some(answers) = answers else {
            return Ok(false);
        };
        if fault == Fault::ProcessDies {
            self.replace_killed().await;
        }
        self.repeat_until_final(case, run, fault, answers, false).await?;
        self.check_footprint(&before, expected).await?;
        Ok(true)
    }

    /// Runs requests of a case that one statement saves together, with each fault at it.
    pub(crate) async fn check_batch<C: Case>(&mut self, case: &C) -> Verdict {
        let (once, statements) = self.statements(case).await?;
        let of_all = once.into_iter().map(|(what, count)| (what, count * (BATCH + 1)));
        let expected = of_all.collect();
        let mut latest = statements.iter().rev();
        let (Some(save), Some(read)) = (latest.next(), latest.nth(C::READS_OF_BATCH)) else {
            return Err(format!("they are not read and saved: {statements:?}"));
        };
        // An answer that waits gives way to nobody: the batch is saved.
        let faults = FAULTS.map(|fault| (fault != Fault::Waits).then_some(fault));
        let faults = faults.into_iter().flatten().collect::<Vec<_>>();
        at_each(std::slice::from_ref(save), &faults, async |save, fault| {
            self.spare
                .get_or_insert_with(|| FaultyServer::start(&self.world, self.rewrite));
            self.play_batch(case, read, save, fault, &expected).await
        })
        .await
    }

    /// While the first request waits for its answer, the others gather; then the fault happens to their
    /// batch. False if they were not all in it.
    async fn play_batch<C: Case>(
        &mut self,
        case: &C,
        read: &Statement,
        save: &Statement,
        fault: Fault,
        expected: &Footprint,
    ) -> Result<bool, String> {
        let first = self.run(case).await;
        let mut runs = Vec::new();
        for _ in 0..BATCH {
            runs.push(self.run(case).await);
        }
        let marks = |run: &Run<C::Subject>| match &run.key {
            Some(key) => [key.clone().into_bytes(), key.clone().into_bytes()],
            None => case.marks(&run.subject),
        };
        let (before_it, in_it): (Vec<_>, Vec<_>) = runs.iter().map(marks).map(<(_, _)>::from).unzip();
        let holds_all = |sent: &[u8], marks: &[Vec<u8>]| {
            marks
                .iter()
                .all(|mark| sent.windows(mark.len()).any(|bytes| bytes == mark))
        };
        let before = self.footprint().await;
        self.faulty.proxy.arm(save, Fault::Waits);
        let mut asking = vec![tokio::spawn(
            first.keyed(self.request(case, &first.subject)).try_send(),
        )];
        if timeout(REACHED, self.faulty.proxy.reached()).await.is_err() {
            return Err("the first one is not saved".to_owned());
        }
        for run in &runs {
            asking.push(tokio::spawn(
                run.keyed(self.request(case, &run.subject)).try_send(),
            ));
        }
        let proxy = &self.faulty.proxy;
        until("they are read", async || {
            // The first one gives up while it waits.
            asking.first().is_some_and(JoinHandle::is_finished)
                || holds_all(&proxy.sent_with(&read.sql).concat(), &before_it) && proxy.under_way() == 1
        })
        .await;
        // The server has one thread: when it has looked up this token, it has added them to the batch.
        let passing = format!("{}/v1/me", self.faulty.server.base_url);
        let passing = self.world.client.get(&passing).bearer("ps_at_unknown");
        passing.send().await.expect(401);
        self.faulty.proxy.arm(save, fault);
        self.faulty.proxy.resume();
        let mut answers = Vec::new();
        for asking in asking {
            answers.push(asking.await.unwrap().into_iter().collect());
        }
        let sent = self.faulty.proxy.sent_with(&save.sql);
        let is_whole = sent.first().is_some_and(|sent| holds_all(sent, &in_it));
        if self.faulty.proxy.disarm() {
            return Ok(false);
        }
        if fault == Fault::ProcessDies {
            self.replace_killed().await;
        }
        if !is_whole {
            return Ok(false);
        }
        for (run, answers) in std::iter::once(first).chain(runs).zip(answers) {
            self.repeat_until_final(case, run, fault, answers, true).await?;
        }
        self.check_footprint(&before, expected).await?;
        Ok(true)
    }

    /// Runs a case, and `meanwhile` while each of its statements waits for its answer.
    pub(crate) async fn check_meanwhile<C: Case, T>(
        &mut self,
        case: &C,
        meanwhile: impl AsyncFn(&Self) -> T,
        after: impl AsyncFn(&Self, T) -> Verdict,
    ) -> Verdict {
        let (_, statements) = self.statements(case).await?;
        at_each(&statements, &[Fault::Waits], async |statement, _| {
            let run = self.run(case).await;
            self.faulty.proxy.arm(statement, Fault::Waits);
            let mut first = tokio::spawn(run.keyed(self.request(case, &run.subject)).try_send());
            if !self.is_reached_by(&mut first).await {
                return Ok(false);
            }
            let meanwhile = meanwhile(self).await;
            self.faulty.proxy.resume();
            let answer = first.await.unwrap().map_err(|error| error.to_string())?;
            // The others took longer than the program waits.
            if answer.status >= 500 {
                return Ok(false);
            }
            let played = Played {
                subject: &run.subject,
                fault: Some(Fault::Waits),
                answer,
                sent: 1,
            };
            case.judge(&self.world, &played).await?;
            after(self, meanwhile)
                .await
                .and(self.check_never().await)
                .map(|()| true)
        })
        .await
    }

    /// Runs a case and kills its process at a moment between statements.
    pub(crate) async fn check_killed<C: Case>(&mut self, case: &C, moment: impl AsyncFnOnce()) -> Verdict {
        let (expected, _) = self.run_undisturbed(case).await?;
        let (run, before) = (self.run(case).await, self.footprint().await);
        let first = tokio::spawn(run.keyed(self.request(case, &run.subject)).try_send());
        moment().await;
        self.faulty.server.kill();
        self.replace_killed().await;
        let answers = first.await.unwrap().into_iter().collect();
        self.repeat_until_final(case, run, Fault::ProcessDies, answers, false)
            .await?;
        self.check_footprint(&before, &expected).await
    }

    async fn run<C: Case>(&self, case: &C) -> Run<C::Subject> {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        Run {
            subject: case.prepare(&self.world).await,
            key: case.is_keyed().then(|| format!("key-{number}.")),
        }
    }

    /// Repeats a request until the client gets a final answer, and checks the answers. What is saved in a
    /// batch has no claim to wait for.
    async fn repeat_until_final<C: Case>(
        &self,
        case: &C,
        run: Run<C::Subject>,
        fault: Fault,
        mut answers: Vec<Answer>,
        in_batch: bool,
    ) -> Verdict {
        let again = || run.keyed(case.request(&self.world, &run.subject));
        let mut sent = if fault == Fault::Waits { 2 } else { 1 };
        while !answers.iter().any(is_final) && sent < REPEATS {
            if answers.last().is_some_and(is_undecided) {
                if in_batch {
                    return Err(format!("a repeat does not run at once: {answers:?}"));
                }
                self.clock.advance(LEASE).await;
            }
            sent += 1;
            answers.extend(again().try_send().await);
        }
        if run.key.is_some() {
            answers.push(again().send().await);
        }
        answers.retain(is_final);
        // Refusals are not stored: a late repeat may be refused because of what happened meanwhile.
        let good: Vec<_> = answers.iter().filter(|answer| answer.status < 400).collect();
        if run.key.is_some() && good.windows(2).any(|two| two[0].bytes != two[1].bytes) {
            return Err(format!("several answers to one key: {good:?}"));
        }
        let last = good.last().copied().or(answers.last());
        let answer = last.ok_or("no final answer")?.clone();
        let played = Played {
            subject: &run.subject,
            fault: Some(fault),
            answer,
            sent,
        };
        case.judge(&self.world, &played).await
    }

    /// Runs a case with a rival request at each of its statements: exactly one of the two succeeds.
    pub(crate) async fn check_against_rivals<C: Case>(&mut self, case: &C) -> Verdict {
        let (expected, statements) = self.statements(case).await?;
        at_each(&statements, &[Fault::Waits], async |statement, _| {
            let (run, before) = (self.run(case).await, self.footprint().await);
            self.faulty.proxy.arm(statement, Fault::Waits);
            let first = run.keyed(self.request(case, &run.subject));
            let rival = case.request(&self.world, &run.subject);
            let Some(answers) = self.overtaken(first, rival, TimeDelta::zero()).await else {
                return Ok(false);
            };
            // The rival took longer than the program waits.
            if !answers.iter().all(is_final) {
                return Ok(false);
            }
            if answers.iter().filter(|answer| answer.status < 300).count() != 1 {
                return Err(format!("with a rival: {answers:?}"));
            }
            self.check_footprint(&before, &expected).await.map(|()| true)
        })
        .await
    }

    /// The request to the server with faults.
    fn request<C: Case>(&mut self, case: &C, subject: &C::Subject) -> Request {
        std::mem::swap(&mut self.world.server, &mut self.faulty.server);
        let request = case.request(&self.world, subject);
        std::mem::swap(&mut self.world.server, &mut self.faulty.server);
        request
    }

    /// Whether a request reaches its waiting statement before it ends.
    async fn is_reached_by<T>(&self, request: &mut JoinHandle<T>) -> bool {
        tokio::select! {
            () = self.faulty.proxy.reached() => true,
            _ = request => {
                self.faulty.proxy.disarm();
                false
            }
        }
    }

    /// Sends a request with a waiting statement. Meanwhile advances the clock by `later` and sends another
    /// request elsewhere. `None` if the statement does not come, or the other request neither ends nor waits
    /// for a lock before the first goes on.
    async fn overtaken(&self, first: Request, other: Request, later: TimeDelta) -> Option<Vec<Answer>> {
        let mut first = tokio::spawn(first.try_send());
        if !self.is_reached_by(&mut first).await {
            return None;
        }
        self.clock.advance(later).await;
        let other = tokio::spawn(other.try_send());
        let has_overtaken = eventually_or(OVERTAKING, async || {
            other.is_finished() || self.waits_for_lock().await
        })
        .await;
        self.faulty.proxy.resume();
        let answers = [first.await.unwrap(), other.await.unwrap()];
        has_overtaken.then(|| answers.into_iter().flatten().collect())
    }

    /// Replaces the killed server.
    async fn replace_killed(&mut self) {
        let spare = self.spare.take();
        let spare = spare.unwrap_or_else(|| FaultyServer::start(&self.world, self.rewrite));
        self.faulty = spare.await.unwrap();
    }

    /// The first column of a query's rows.
    pub(crate) async fn list(&self, statement: &str) -> Vec<String> {
        let rows = self.inspector.query(statement, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Like [`World::count`], on an open connection.
    pub(crate) async fn count(&self, statement: &str) -> i64 {
        self.inspector.query_one(statement, &[]).await.unwrap().get(0)
    }

    /// Whether a statement waits for a lock.
    pub(crate) async fn waits_for_lock(&self) -> bool {
        self.count(lock_waits()).await > 0
    }

    pub(crate) async fn footprint(&self) -> Footprint {
        let rows = self.inspector.query(FOOTPRINT, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Checks that the footprint has grown as expected and that no forbidden state has occurred.
    pub(crate) async fn check_footprint(&self, before: &Footprint, expected: &Footprint) -> Verdict {
        let left = difference(before, &self.footprint().await);
        if left != *expected {
            return Err(format!("the footprint is {left:?} instead of {expected:?}"));
        }
        self.check_never().await
    }

    async fn check_never(&self) -> Verdict {
        // A worker examines a queue again after it has put it to sleep.
        eventually_or(OVERTAKING, async || self.list(NEVER).await.is_empty()).await;
        self.list(NEVER).await.pop().map_or(Ok(()), Err)
    }
}

/// Calls `play` for each of these statements and each fault. `play` returns whether its statement came.
pub(crate) async fn at_each(
    statements: &[Statement],
    faults: &[Fault],
    mut play: impl AsyncFnMut(&Statement, Fault) -> Result<bool, String>,
) -> Verdict {
    for statement in statements {
        for fault in faults {
            let is_another = match fault {
                // Outside of a transaction, an executed statement cannot fail afterwards.
                Fault::FailsAfter => !statement.in_transaction,
                // A transaction ends with its connection, whether or not the statement was executed: see
                // `Fault::AnswerLost`.
                Fault::NeverArrives => statement.in_transaction,
                _ => false,
            };
            if is_another {
                continue;
            }
            let mut came = false;
            // On a busy machine a request may fail before its statement.
            for _ in 0..TRIES {
                let played = play(statement, *fault).await;
                came =
                    came || played.map_err(|violation| format!("{fault:?} at {statement:?}: {violation}"))?;
                if came {
                    break;
                }
            }
            if !came {
                return Err(format!(
                    "{fault:?} at {statement:?}: not sent again, or not overtaken"
                ));
            }
        }
    }
    Ok(())
}

/// Whether the request with this key is still in progress.
fn is_undecided(answer: &Answer) -> bool {
    answer.status == 409 && answer.code() == "idempotency_in_progress"
}

/// Whether the client can stop repeating.
fn is_final(answer: &Answer) -> bool {
    answer.status < 500 && !is_undecided(answer)
}

/// Waits until `look` returns true; false after `limit`.
pub(crate) async fn eventually_or(limit: Duration, mut look: impl AsyncFnMut() -> bool) -> bool {
    let waiting = async {
        while !look().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(limit, waiting).await.is_ok()
}
