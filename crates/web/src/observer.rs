//! Requests with their bodies, for a process that shows them: the sandbox.

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody as _};
use bytes::Bytes;

use crate::access_log::AccessLine;

/// Sees every request, except probes, once its response is made. It is called by the server's thread, so it
/// MUST be quick.
pub trait Observer: Send + Sync {
    fn request(&self, line: &AccessLine<'_>, bodies: &Bodies);
}

/// The bodies of a request and its response. Streams, and what was not read, are left out.
#[derive(Debug, Clone, Default)]
pub struct Bodies {
    pub request: Bytes,
    pub response: Bytes,
}

impl Bodies {
    /// Keeps the response's body.
    pub(crate) fn of_response(&mut self, response: HttpResponse) -> HttpResponse {
        response.map_body(|_, body| {
            if !matches!(body.size(), BodySize::Sized(1..)) {
                return body;
            }
            match body.try_into_bytes() {
                Ok(bytes) => {
                    self.response = bytes.clone();
                    BoxBody::new(bytes)
                }
                Err(stream) => stream,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use actix_web::App;
    use actix_web::test::{TestRequest, call_service, init_service, read_body};

    use super::*;
    use crate::body::BodyLimits;
    use crate::front::Front;
    use crate::request::{Answer, Request};
    use crate::{ServiceSettings, TrustedProxies};

    const LIMITS: BodyLimits = BodyLimits {
        cap: 100,
        within: Duration::from_secs(1),
    };

    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);

    impl Observer for Seen {
        fn request(&self, line: &AccessLine<'_>, bodies: &Bodies) {
            let Bodies { request, response } = bodies;
            let seen = format!("{} {} {request:?} {response:?}", line.route, line.status.as_u16());
            self.0.lock().unwrap().push(seen);
        }
    }

    fn settings(observer: Option<Arc<dyn Observer>>) -> ServiceSettings {
        ServiceSettings {
            public_url: String::new(),
            name: "Shop".to_owned(),
            realm: "shop".to_owned(),
            docs_url: String::new(),
            default_rate_limit: NonZeroU32::MIN,
            trusted_proxies: TrustedProxies::default(),
            body_timeout: Duration::ZERO,
            idempotency_lease: Duration::ZERO,
            observer,
        }
    }

    /// Answers with the body, and says in a header whether it is kept.
    async fn echo(mut request: Request) -> Answer {
        let body = request.body(LIMITS).await.unwrap();
        let is_kept = request.bodies.as_ref().map(|bodies| bodies.request.len());
        let mut response = HttpResponse::Ok();
        response.insert_header(("x-kept", format!("{is_kept:?}")));
        let route = if request.path() == "/readyz" {
            "/readyz"
        } else {
            "/echo"
        };
        let response = if body.is_empty() {
            HttpResponse::NoContent().finish()
        } else {
            response.body(body)
        };
        request.end(response, route, false)
    }

    #[actix_web::test]
    async fn an_observer_sees_both_bodies_and_no_probes() {
        let seen = Arc::new(Seen::default());
        let observer: Arc<dyn Observer> = seen.clone();
        let front = Front::public("test", &settings(Some(observer)));
        let app = init_service(App::new().default_service(front.route(echo))).await;
        for (path, body, status) in [("/", "hello", 200), ("/", "", 204), ("/readyz", "x", 200)] {
            let request = TestRequest::post().uri(path).set_payload(body).to_request();
            let response = call_service(&app, request).await;
            assert_eq!(response.status(), status);
            assert_eq!(read_body(response).await, body);
        }
        assert_eq!(
            *seen.0.lock().unwrap(),
            [r#"/echo 200 b"hello" b"hello""#, r#"/echo 204 b"" b"""#]
        );
    }

    #[actix_web::test]
    async fn without_an_observer_nothing_is_kept() {
        let front = Front::public("test", &settings(None));
        let app = init_service(App::new().default_service(front.route(echo))).await;
        let response = call_service(&app, TestRequest::post().set_payload("hello").to_request()).await;
        assert_eq!(response.headers().get("x-kept").unwrap(), "None");
        assert_eq!(read_body(response).await, "hello");
    }
}
