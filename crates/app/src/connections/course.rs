//! Where a connection stands between its requests, and until when it may stand there.

use std::{cell::Cell, time::Duration};

use tokio::time::Instant;

use super::intake::BodyLength;

/// The course of one connection, shared within its thread by the stream and the handling of requests.
#[derive(Debug)]
pub(crate) struct Course {
    stage: Cell<Stage>,
    /// The body of the request that has begun, until it was asked for.
    body: Cell<Option<BodyLength>>,
    /// Whether the last answer of the connection was given.
    closing: Cell<bool>,
    /// Whether the HTTP library is not through yet with the last request's answer.
    answering: Cell<bool>,
    /// From the end of a request, or the beginning of the connection, to the next request's whole head.
    between: Duration,
    /// For a head of which something has come.
    head: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has come yet; the HTTP library itself limits the first head.
    New { until: Instant },
    /// The last request is over. Part of the next head may lie in a buffer already, having come with that request.
    Idle { until: Instant },
    /// Something of the next head has come.
    Head { until: Instant },
    /// A request is being read and handled, which has time limits of its own.
    Request,
}

impl Course {
    pub(crate) fn new(keep_alive: Duration, head: Duration) -> Self {
        let between = keep_alive + head;
        let until = Instant::now() + between;
        Self {
            stage: Cell::new(Stage::New { until }),
            body: Cell::new(None),
            closing: Cell::new(false),
            answering: Cell::new(false),
            between,
            head,
        }
    }

    /// A request's head is whole, and tells how long its body is.
    pub(super) fn request_begins(&self, body: BodyLength) {
        self.body.set(Some(body));
        self.answering.set(true);
        self.stage.set(Stage::Request);
    }

    /// How long the body is of the request that has begun since this was asked last.
    pub(super) fn body(&self) -> Option<BodyLength> {
        self.body.take()
    }

    /// Whether the connection was read from since the request has begun.
    pub(super) fn is_read_on(&self) -> bool {
        let body = self.body.take();
        self.body.set(body);
        body.is_none()
    }

    /// A request's response is ready to be sent, which counts towards the time until the next request. `last` says that there is
    /// to be none.
    pub(crate) fn request_ends(&self, last: bool) {
        if last {
            self.closing.set(true);
        }
        let until = Instant::now() + self.between;
        self.stage.set(Stage::Idle { until });
    }

    /// The HTTP library has taken all of the answer, or given it up.
    pub(super) fn answer_ends(&self) {
        self.answering.set(false);
    }

    /// Until when the connection may go on as it is, where its last request is over with its answer and another one may come.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        match self.stage.get() {
            Stage::Idle { until } if !self.answering.get() && !self.closing.get() => {
                Some(until.checked_sub(self.head).unwrap_or(until))
            }
            _ => None,
        }
    }

    /// Bytes were read.
    pub(crate) fn bytes_came(&self) {
        match self.stage.get() {
            Stage::New { until } => self.stage.set(Stage::Head { until }),
            Stage::Idle { until } => {
                let until = until.min(Instant::now() + self.head);
                self.stage.set(Stage::Head { until });
            }
            Stage::Head { .. } | Stage::Request => {}
        }
    }

    /// When the connection has to be given up; never during a request.
    pub(crate) fn until(&self) -> Option<Instant> {
        match self.stage.get() {
            Stage::New { until } | Stage::Idle { until } | Stage::Head { until } => Some(until),
            Stage::Request => None,
        }
    }

    /// Whether a request is being read and handled.
    pub(crate) fn is_at_a_request(&self) -> bool {
        self.stage.get() == Stage::Request
    }

    /// Whether the last answer of the connection was given.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Whether nothing is known to have come of a request that was not answered.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.stage.get(), Stage::New { .. } | Stage::Idle { .. })
    }

    /// Whether part of a head has come.
    pub(crate) fn is_at_a_head(&self) -> bool {
        matches!(self.stage.get(), Stage::Head { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn left(course: &Course) -> Option<u64> {
        course.until().map(|until| (until - Instant::now()).as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_head_has_its_own_time_and_no_byte_of_it_gains_more() {
        let course = Course::new(10 * SECOND, 3 * SECOND);
        assert_eq!(left(&course), Some(13));
        course.bytes_came();
        assert_eq!(
            left(&course),
            Some(13),
            "the first head is the library's to limit"
        );
        course.request_begins(BodyLength::Known(0));
        assert_eq!(left(&course), None);
        course.bytes_came();
        assert_eq!(left(&course), None);
        course.request_ends(false);
        assert!(course.is_idle());
        tokio::time::advance(5 * SECOND).await;
        assert_eq!(left(&course), Some(8));
        course.bytes_came();
        assert!(!course.is_idle());
        tokio::time::advance(SECOND).await;
        course.bytes_came();
        assert_eq!(left(&course), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_begins_late_ends_with_the_pause() {
        let course = Course::new(10 * SECOND, 3 * SECOND);
        course.request_begins(BodyLength::Known(0));
        course.request_ends(false);
        tokio::time::advance(12 * SECOND).await;
        course.bytes_came();
        assert_eq!(left(&course), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_rest_only_between_an_answer_and_the_next_byte() {
        let course = Course::new(10 * SECOND, 3 * SECOND);
        assert_eq!(course.rests_until(), None, "nothing has come yet");
        course.request_begins(BodyLength::Known(0));
        assert_eq!(course.rests_until(), None);
        course.request_ends(false);
        assert_eq!(course.rests_until(), None, "the answer may be long");
        course.answer_ends();
        assert_eq!(course.rests_until(), Some(Instant::now() + 10 * SECOND));
        course.bytes_came();
        assert_eq!(course.rests_until(), None);
        course.request_begins(BodyLength::Known(0));
        course.request_ends(true);
        course.answer_ends();
        assert_eq!(course.rests_until(), None, "there is no next one");
    }
}
