//! Gathering: while one statement is under way, the next questions wait and then go as one statement.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use diesel_async::AsyncPgConnection;
use kernel::StoreError;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::{
    ANSWER_WITHIN,
    connector::Connector,
    error::{SharedFailure, within},
    line::Line,
    meters::GroupSizes,
    spans,
};

/// The most questions that go as one statement: enough for all that a server thread has in flight, and few enough that
/// nobody waits long for the others' rows.
const GROUP: usize = 128;

/// A statement that answers many questions at once.
#[async_trait]
pub(crate) trait Grouped: Send + Sync + 'static {
    /// Names it in the metrics.
    const NAME: &'static str;
    /// What is asked.
    type Question: Send + Sync + 'static;
    /// What is answered.
    type Answer: Send + 'static;

    /// Answers every question, in order. What one question alone meets is its own failure.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> diesel::QueryResult<Vec<Result<Self::Answer, StoreError>>>;
}

struct Waiter<G: Grouped> {
    question: G::Question,
    /// Told how many went together.
    span: Span,
    reply: oneshot::Sender<Result<G::Answer, StoreError>>,
}

/// Gathers the questions of one server thread. Its task and its connection live on the runtime of the first caller; where
/// that one has ended, the next caller starts them anew.
pub(crate) struct Gatherer<G: Grouped> {
    grouped: Arc<G>,
    connector: Arc<Connector>,
    queue: Mutex<Option<mpsc::UnboundedSender<Waiter<G>>>>,
}

impl<G: Grouped> Gatherer<G> {
    pub(crate) fn new(grouped: G, connector: Arc<Connector>) -> Self {
        Self {
            grouped: Arc::new(grouped),
            connector,
            queue: Mutex::new(None),
        }
    }

    /// Asks, together with whoever else is waiting. Its span is the asker's own: from the question on, the wait for the statement
    /// that is under way included.
    pub(crate) async fn ask(&self, question: G::Question) -> Result<G::Answer, StoreError> {
        let (span, (reply, answer)) = (spans::of(G::NAME), oneshot::channel());
        self.enqueue(Waiter {
            question,
            span: span.clone(),
            reply,
        });
        let gone = |_| StoreError::Unavailable("the task that asks the database has ended".into());
        let answered = within(ANSWER_WITHIN, async {
            answer.await.unwrap_or_else(|lost| Err(gone(lost)))
        });
        spans::within(span, answered).await
    }

    /// The queue has no bound of its own: who waits too long leaves, and is not asked for any more.
    fn enqueue(&self, waiter: Waiter<G>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let waiter = match queue.as_ref() {
            None => waiter,
            Some(sender) => match sender.send(waiter) {
                Ok(()) => return,
                Err(mpsc::error::SendError(returned)) => returned,
            },
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let line = Line::new(Arc::clone(&self.connector), G::NAME);
        drop(tokio::spawn(serve(Arc::clone(&self.grouped), line, receiver)));
        // It cannot fail: the receiver has only just been made.
        let _ = sender.send(waiter);
        *queue = Some(sender);
    }
}

async fn serve<G: Grouped>(grouped: Arc<G>, line: Line, mut queue: mpsc::UnboundedReceiver<Waiter<G>>) {
    let mut waiting = Vec::with_capacity(GROUP);
    let sizes = GroupSizes::of(G::NAME);
    while let Some(first) = queue.recv().await {
        waiting.push(first);
        // Those whose requests have come in by now are let ask first. An answer sets many free at once, and so half of them
        // would otherwise always be a step behind the others, in groups half as large.
        tokio::task::yield_now().await;
        while waiting.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            waiting.push(next);
        }
        waiting.retain(|waiter| !waiter.reply.is_closed());
        if waiting.is_empty() {
            continue;
        }
        for waiter in &waiting {
            spans::of_many(&waiter.span, waiting.len());
        }
        let (questions, replies): (Vec<_>, Vec<_>) = waiting.drain(..).map(|w| (w.question, w.reply)).unzip();
        sizes.note(questions.len());
        let asked = line.ask(|link| {
            let (grouped, questions) = (&grouped, &questions);
            async move { grouped.answer(link.connection(), questions).await }
        });
        tell(replies, asked.await);
    }
}

/// A waiter that has gone away does not take its answer, and nobody minds.
fn tell<A>(
    replies: Vec<oneshot::Sender<Result<A, StoreError>>>,
    answers: Result<Vec<Result<A, StoreError>>, StoreError>,
) {
    match answers {
        Ok(answers) => {
            for (reply, answer) in replies.into_iter().zip(answers) {
                drop(reply.send(answer));
            }
        }
        Err(failure) => {
            let failure = SharedFailure::new(failure);
            for reply in replies {
                drop(reply.send(Err(failure.for_one())));
            }
        }
    }
}
