//! Batching: while one statement is under way, further questions queue, and then go out together.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use diesel::QueryResult;
use diesel_async::AsyncPgConnection;
use kernel::{Reader, StoreError, TransactionError};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::{Instrument as _, Span};
use usecases::LockSet;

use crate::connection::Connector;
use crate::connection::error::{AnswerTimeout, with_timeout};
use crate::connection::pool::Autocommit;
use crate::connection::shared::SharedConnection;
use crate::turns::{Admission, Turns};
use crate::{ANSWER_TIMEOUT, observe};

/// The usual largest number of questions per batch: enough for all that a server thread has in flight, and
/// few enough that no caller waits long for the rows of others.
const BATCH: usize = 128;

/// One statement that answers many questions, or a few that are sent together.
#[async_trait]
pub(crate) trait BatchQuery: Send + Sync + 'static {
    /// Its name in the metrics.
    const NAME: &'static str;
    /// The largest number of questions per batch.
    const MAX_MEMBERS: usize = BATCH;
    /// Where sellers take turns: how many questions of one may be under way.
    const SHARE: usize = 2 * Self::MAX_MEMBERS;
    /// Whether an abandoned statement is cancelled. One whose outcome is looked up later MUST not be: if its
    /// COMMIT waits for a synchronous standby, a cancellation makes PostgreSQL commit without that, and the change
    /// would be acknowledged.
    const CANCELS: bool = true;
    type Question: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// Answers every question, in order. An inner error concerns only its own question.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<Self::Answer, StoreError>>>;
}

struct Waiter<G: BatchQuery> {
    question: G::Question,
    /// Records the size of the batch.
    span: Span,
    reply: oneshot::Sender<Result<G::Answer, StoreError>>,
}

/// A change that waits for its statement. Whoever asked can withdraw it until it is sent.
pub(crate) struct Withdrawable<C> {
    pub(crate) change: C,
    /// Set once: when it is sent, or when it is withdrawn. Gone with its caller.
    taken: Weak<AtomicBool>,
}

impl<C> Withdrawable<C> {
    /// True once at most: then the caller sends the change.
    pub(crate) fn take(&self) -> bool {
        let taken = self.taken.upgrade();
        taken.is_some_and(|taken| !taken.swap(true, Ordering::Relaxed))
    }
}

impl<C, G: BatchQuery<Question = Withdrawable<C>>> Batcher<G> {
    /// Asks for a change, which is sent once at most. Withdraws it after `time_left`; if it was sent, its
    /// outcome is awaited.
    pub(crate) async fn send_once(
        &self,
        change: C,
        time_left: Duration,
    ) -> Result<G::Answer, TransactionError> {
        let taken = Arc::<AtomicBool>::default();
        let question = Withdrawable {
            change,
            taken: Arc::downgrade(&taken),
        };
        // False if the change was sent before, or may have been.
        let withdraw = || !taken.swap(true, Ordering::Relaxed);
        let mut asking = pin!(self.ask(question));
        let outcome = match timeout(time_left, &mut asking).await {
            Ok(outcome) => outcome,
            Err(_) if withdraw() => {
                return Err(TransactionError::Store(AnswerTimeout(time_left).into()));
            }
            Err(_) => asking.await,
        };
        outcome.map_err(|error| {
            if withdraw() {
                TransactionError::Store(error)
            } else {
                TransactionError::Unknown(error)
            }
        })
    }
}

/// Batches the questions of its callers: of one server thread, or for changes of offers of the whole process.
/// Its task lives on the runtime of the first caller, and so does its connection. If that runtime has ended,
/// the next caller starts them again.
pub(crate) struct Batcher<G: BatchQuery> {
    query: Arc<G>,
    connection: Arc<SharedConnection>,
    /// Closed while no task serves it.
    queue: Mutex<mpsc::UnboundedSender<Waiter<G>>>,
    turns: Arc<Turns>,
}

impl<G: BatchQuery> Batcher<G> {
    pub(crate) fn new(query: G, connector: Arc<Connector>) -> Self {
        Self {
            query: Arc::new(query),
            connection: Arc::new(SharedConnection::new(connector, G::NAME, G::CANCELS)),
            queue: Mutex::new(mpsc::unbounded_channel().0),
            turns: Turns::new(G::SHARE),
        }
    }

    /// Waits until so few questions of this seller, and of this application, are under way that they hold up nobody else's.
    pub(crate) async fn turn(&self, reader: Reader, limit: Duration) -> Result<Admission, StoreError> {
        self.turns.take(&LockSet::of_reader(reader), limit).await
    }

    /// Runs a read of its own on the connection of the batches, in the reader's turn. That lasts until the answer, even
    /// if the caller has gone: the statement is on the connection until then.
    pub(crate) async fn alone<T, F>(
        &self,
        reader: Reader,
        read: impl FnOnce(Arc<SharedConnection>) -> F + Send,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let turn = self.turn(reader, ANSWER_TIMEOUT).await?;
        self.alone_in(turn, read).await
    }

    /// The same in a turn that the caller has.
    pub(crate) async fn alone_in<T, F>(
        &self,
        turn: impl Send + 'static,
        read: impl FnOnce(Arc<SharedConnection>) -> F + Send,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let read = read(Arc::clone(&self.connection));
        let reading = async move {
            let answer = read.await;
            drop(turn);
            answer
        };
        let reading = tokio::spawn(reading.in_current_span()).await;
        reading.unwrap_or_else(|ended| Err(StoreError::Unavailable(ended.into())))
    }

    /// Sends a question in a batch with all other waiting ones. The span belongs to the caller and includes
    /// the wait for the statement under way.
    pub(crate) async fn ask(&self, question: G::Question) -> Result<G::Answer, StoreError> {
        let (span, (reply, answer)) = (observe::span(G::NAME), oneshot::channel());
        self.enqueue(Waiter {
            question,
            span: span.clone(),
            reply,
        });
        let lost = || StoreError::Unavailable("the batch task has ended".into());
        let answered = with_timeout(ANSWER_TIMEOUT, async {
            answer.await.unwrap_or_else(|_| Err(lost()))
        });
        observe::in_span(span, answered).await
    }

    /// The queue is unbounded: a caller that times out leaves, and its question is dropped.
    fn enqueue(&self, waiter: Waiter<G>) {
        let mut queue = self.queue.lock();
        let Err(mpsc::error::SendError(waiter)) = queue.send(waiter) else {
            return;
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let (query, connection) = (Arc::clone(&self.query), Arc::clone(&self.connection));
        drop(tokio::spawn(serve(query, connection, receiver)));
        // This cannot fail: the receiver was created just above.
        let _ = sender.send(waiter);
        *queue = sender;
    }
}

/// Reads outside a transaction: one kind of question in batches, all else by autocommitted statements.
pub(crate) struct Reads<G: BatchQuery> {
    pub(crate) batches: Batcher<G>,
    pub(crate) statements: Autocommit,
}

async fn serve<G: BatchQuery>(
    query: Arc<G>,
    connection: Arc<SharedConnection>,
    mut queue: mpsc::UnboundedReceiver<Waiter<G>>,
) {
    let mut waiting = Vec::with_capacity(G::MAX_MEMBERS);
    let sizes = metrics::histogram!("database_batch_size", "statement" => G::NAME);
    while let Some(first) = queue.recv().await {
        waiting.push(first);
        // Let other ready requests enqueue first. One batch wakes many callers; without the yield, half of
        // them would always miss the next batch, and batches would be half as large.
        tokio::task::yield_now().await;
        while waiting.len() < G::MAX_MEMBERS
            && let Ok(next) = queue.try_recv()
        {
            waiting.push(next);
        }
        waiting.retain(|waiter| !waiter.reply.is_closed());
        if waiting.is_empty() {
            continue;
        }
        for waiter in &waiting {
            observe::record_batch_size(&waiter.span, waiting.len());
        }
        let (questions, replies): (Vec<_>, Vec<_>) = waiting.drain(..).map(|w| (w.question, w.reply)).unzip();
        sizes.record(u32::try_from(questions.len()).unwrap_or(u32::MAX));
        let answers = connection.ask(|open| {
            let (query, questions) = (&query, &questions);
            async move { query.answer(open.connection(), questions).await }
        });
        let answers = answers.await;
        let failed = |failure: StoreError| replies.iter().map(|_| Err(failure.clone())).collect();
        let answers: Vec<_> = answers.unwrap_or_else(failed);
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A caller that has gone away is skipped.
            drop(reply.send(answer));
        }
    }
}
