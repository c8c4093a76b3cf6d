//! The listeners, and what one of them says to bytes that are sent to it.

use std::time::Duration;

use blackbox::World;
use testkit::TestWorker;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::PROGRAM;

/// A listener, a path that it answers with 200, and the headers that this needs.
struct Listener {
    name: &'static str,
    base: String,
    path: &'static str,
    headers: String,
}

/// What a connection said before it ended, or before nothing more came.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) statuses: Vec<u16>,
    ended: bool,
    pub(super) text: String,
}

/// What lies where a body is; it has a path that nobody else asks for.
pub(super) const INNER: &str = "GET /smuggled HTTP/1.1\r\nhost: inner\r\n\r\n";

impl Said {
    pub(super) fn closes(&self) -> bool {
        self.text.to_lowercase().contains("connection: close")
    }
}

pub(super) struct Listeners {
    pub(super) world: World,
    /// Ends with the value.
    _worker: TestWorker,
    all: Vec<Listener>,
}

pub(super) async fn listeners() -> Listeners {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__SERVER__BODY_TIMEOUT", "700ms")
            .set("SELLER_API__SERVER__HEADER_TIMEOUT", "2s")
            .set("SELLER_API__SERVER__KEEP_ALIVE", "1s")
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
    })
    .await;
    let (_, token) = world.reader().await;
    let (worker, probes) = TestWorker::listening(&world.options, &world.database).await;
    let bearer = |token: &str| format!("user-agent: Tests/1.0\r\nauthorization: Bearer {token}\r\n");
    let all = vec![
        Listener {
            name: "api",
            base: world.server.base_url.clone(),
            path: "/v1/me",
            headers: bearer(&token),
        },
        Listener {
            name: "back office",
            base: world.server.backoffice_url.clone(),
            path: "/healthz",
            headers: bearer(&world.server.operator_token),
        },
        Listener {
            name: "probes",
            base: probes,
            path: "/healthz",
            headers: String::new(),
        },
    ];
    Listeners {
        world,
        _worker: worker,
        all,
    }
}

impl Listener {
    /// `{path}` and `{headers}` filled in.
    fn fill(&self, template: &str) -> String {
        template
            .replace("{path}", self.path)
            .replace("{headers}", &self.headers)
    }

    /// Sends bytes on a connection of their own and reads all that comes of it.
    async fn hears(&self, bytes: &[u8]) -> Said {
        let address = self.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let (mut heard, mut ended) = (Vec::new(), false);
        let mut piece = vec![0; 64 * 1024];
        // An answer that may be waiting for the rest of a body comes after the body's time; idle connections end later.
        while !ended {
            match timeout(Duration::from_secs(10), stream.read(&mut piece)).await {
                Ok(Ok(0) | Err(_)) => ended = true,
                Ok(Ok(read)) => heard.extend_from_slice(&piece[..read]),
                Err(_) => break,
            }
        }
        let text = String::from_utf8_lossy(&heard).into_owned();
        let statuses = text.match_indices("HTTP/1.").map(|(at, _)| {
            let status = text.get(at + 9..at + 12).unwrap_or_default();
            status.parse().unwrap_or_default()
        });
        Said {
            statuses: statuses.filter(|status| *status != 100).collect(),
            ended,
            text,
        }
    }
}

impl Listeners {
    /// Has each listener hear each of these, and complains of what does not hold.
    pub(super) async fn hold(&self, cases: &[(&str, String)], holds: impl Fn(&Said) -> bool) {
        let mut faults = Vec::new();
        for listener in &self.all {
            let asked = cases.iter().map(|(what, template)| async move {
                let bytes = listener.fill(template);
                (*what, listener.hears(bytes.as_bytes()).await)
            });
            let heard = all_of(asked.collect()).await;
            for (what, said) in heard {
                if !(said.ended && holds(&said)) {
                    faults.push(format!("{}, {what}: {said:?}", listener.name));
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }

    /// No request was carried out that lay in a body: none was logged.
    pub(super) fn nothing_was_smuggled(&self) {
        let log = self.world.server.log();
        assert!(!log.contains("smuggled"), "{log}");
    }
}

/// All of them at once.
async fn all_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(Box::pin).map(Some).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (place, future) in pending.iter_mut().enumerate() {
            let Some(running) = future else { continue };
            if let std::task::Poll::Ready(output) = running.as_mut().poll(cx) {
                done[place] = Some(output);
                *future = None;
            }
        }
        if pending.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// One answer of 400, without more, or the connection's end without one.
pub(super) fn refused(said: &Said) -> bool {
    matches!(said.statuses[..], [] | [400])
}

/// A POST with these lines of a head behind the usual ones, and this body.
pub(super) fn post(lines: &str, body: &str) -> String {
    format!("POST {{path}} HTTP/1.1\r\nhost: tests.example\r\n{{headers}}{lines}\r\n{body}")
}
