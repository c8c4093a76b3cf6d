//! An answer's body, which tells its connection when the HTTP library is through with it.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_http::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;

use super::course::Course;

/// The body. A connection whose answer is still being made looks idle otherwise while nothing of it is there to be sent.
pub(super) struct Answer {
    body: BoxBody,
    course: Option<Rc<Course>>,
}

impl Answer {
    pub(super) const fn new(body: BoxBody, course: Option<Rc<Course>>) -> Self {
        Self { body, course }
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_next(cx)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(course) = &self.course {
            course.answer_ends();
        }
    }
}
