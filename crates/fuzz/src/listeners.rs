//! Listeners of the product over stand-ins of their ports, within the process.

use std::{cell::Cell, net::SocketAddr};

use actix_web::{
    App,
    body::{MessageBody, to_bytes},
    http::header::HeaderMap,
    test::{call_service, init_service},
    web::ServiceConfig,
};
use bytes::Bytes;
use kernel::StoreError;
use tokio::runtime::{Builder, Handle, Runtime};
use usecases::MockUnitOfWork;

use crate::raw_request::RawRequest;

thread_local! {
    // Neither this nor a listener is ever dropped: at a thread's end what they would reach for is gone already.
    static RUNTIME: &'static Runtime = Box::leak(Box::new(
        Builder::new_current_thread().enable_all().build().expect("a runtime"),
    ));
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// A port was asked that always fails: then, and only then, may the answer be one of 500.
    pub(crate) store_failed: bool,
    /// The request had DEL in it: then, and only then, may the answer quote it.
    pub(crate) del_was_sent: bool,
}

impl Answered {
    /// The text of a header that is there once, and can be seen.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name);
        let value = values.next()?.to_str().expect("visible ASCII");
        assert!(values.next().is_none(), "{name} is there twice");
        Some(value)
    }
}

/// Runs work on this thread's runtime to its end.
pub(crate) fn waiting<F: Future>(work: impl FnOnce(Handle) -> F) -> F::Output {
    RUNTIME.with(|runtime| {
        let work = work(runtime.handle().clone());
        runtime.block_on(work)
    })
}

/// A listener in this thread.
pub(crate) struct Listening(Box<dyn Fn(RawRequest) -> Answered>);

impl Listening {
    /// The listener that `configure` makes, given the runtime.
    pub(crate) fn new<C: FnOnce(&mut ServiceConfig) + 'static>(configure: impl FnOnce(Handle) -> C) -> Self {
        let app = waiting(|runtime| {
            let _within = runtime.enter();
            let configure = configure(runtime.clone());
            async move { init_service(App::new().configure(configure)).await }
        });
        let app = &*Box::leak(Box::new(app));
        Self(Box::new(move |request| {
            ASKED.set(0);
            let del_was_sent = request.has_del();
            waiting(|_| async move {
                let peer = SocketAddr::from(([192, 0, 2, 1], 4711));
                let request = request.built().peer_addr(peer).to_request();
                let response = call_service(app, request).await;
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                let body = to_bytes(response.into_body().boxed()).await.expect("a body");
                Answered {
                    status,
                    headers,
                    body,
                    store_failed: ASKED.get() > 0,
                    del_was_sent,
                }
            })
        }))
    }

    /// Asks it.
    pub(crate) fn ask(&self, request: RawRequest) -> Answered {
        (self.0)(request)
    }
}

/// A store that cannot be written to: what gets there was decoded, and is answered as a failure.
pub(crate) fn units_that_fail() -> MockUnitOfWork {
    let mut units = MockUnitOfWork::new();
    units.expect_begin().returning(|| Err(failing()));
    units
}

/// The failure of a port that always fails.
pub(crate) fn failing() -> StoreError {
    ASKED.set(ASKED.get() + 1);
    StoreError::Unavailable("there is no store".into())
}
