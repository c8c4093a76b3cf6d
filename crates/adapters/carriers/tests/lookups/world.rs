//! One carrier's client, a stub that plays the carrier, and a manual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use adapter_carriers::{Account, CarrierSettings, Carriers};
use futures_util::future::join_all;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber, TrackingReport};
use testkit::{HttpServer, ManualClock, Received, response};
use tokio::sync::Semaphore;
use url::Url;

use crate::fixtures;

/// The carriers with a client.
pub(crate) const CARRIERS: [Carrier; 7] = [
    Carrier::Inpost,
    Carrier::Dhl,
    Carrier::PocztaPolska,
    Carrier::Dpd,
    Carrier::Gls,
    Carrier::Ups,
    Carrier::Fedex,
];

/// The carriers with access tokens.
pub(crate) const WITH_TOKENS: [Carrier; 4] =
    [Carrier::PocztaPolska, Carrier::Gls, Carrier::Ups, Carrier::Fedex];

pub(crate) const NUMBER: &str = "00340434-TEST-1";
pub(crate) const LOGIN: &str = "someones7login";
pub(crate) const SECRET: &str = "hush5secret";

pub(crate) fn number() -> TrackingNumber {
    TrackingNumber::new(NUMBER.to_owned()).unwrap()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-01-06T22:00:00Z"))
}

/// Settings for one carrier at `base_url`.
pub(crate) fn settings(carrier: Carrier, base_url: &str, deadline: Duration) -> CarrierSettings {
    let base_url = Url::parse(base_url).unwrap();
    let qualifier = match carrier {
        Carrier::Dhl => "parcel-pl",
        Carrier::Dpd => "channel1",
        _ => "",
    };
    let account = Account {
        token_url: base_url.join(TOKEN_PATH).unwrap(),
        base_url,
        qualifier: qualifier.to_owned(),
        ..Account::new(carrier, LOGIN.into(), SECRET.into()).unwrap()
    };
    CarrierSettings {
        deadline,
        user_agent: "Tests/1.0 (+https://tests.example)".to_owned(),
        accounts: vec![account],
    }
}

/// The bytes of an answer.
pub(crate) type Reply = Vec<u8>;

/// The stub reads the request and never answers.
pub(crate) const SILENCE: Reply = Vec::new();

/// An answer after which the stub closes the connection.
pub(crate) fn last_response(status: u16, header: Option<(&str, &str)>, body: &str) -> Reply {
    let headers = header.into_iter().chain([("connection", "close")]);
    response(status, headers, body.as_bytes())
}

pub(crate) fn reply(status: u16, body: impl AsRef<str>) -> Reply {
    last_response(status, None, body.as_ref())
}

/// A 429 with `Retry-After`.
pub(crate) fn throttled(retry_after: &str) -> Reply {
    last_response(429, Some(("retry-after", retry_after)), "{}")
}

/// An answer that announces one byte more than it has.
pub(crate) fn truncated(body: &str) -> Reply {
    let mut bytes = reply(200, format!("{body} "));
    bytes.pop();
    bytes
}

/// The path of token requests; all other paths are tracking.
const TOKEN_PATH: &str = "/token";

#[derive(Default)]
struct Script {
    /// The last one is repeated.
    replies: VecDeque<Reply>,
    requests: Vec<Received>,
}

impl Script {
    fn next(&mut self, request: Received) -> Reply {
        self.requests.push(request);
        let next = self.replies.pop_front().unwrap();
        if self.replies.is_empty() {
            self.replies.push_back(next.clone());
        }
        next
    }
}

/// The scripts of tracking requests and of token requests.
type Scripts = Arc<[Mutex<Script>; 2]>;

pub(crate) struct World {
    pub(crate) carrier: Carrier,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) carriers: Carriers,
    /// The stub's URL.
    pub(crate) url: String,
    scripts: Scripts,
    /// Each tracking answer needs a permit.
    gate: Arc<Semaphore>,
}

impl World {
    /// A world in which the carrier reports the parcel as delivered and issues tokens.
    pub(crate) async fn new(carrier: Carrier) -> Self {
        Self::within(carrier, adapter_carriers::DEADLINE).await
    }

    pub(crate) async fn within(carrier: Carrier, deadline: Duration) -> Self {
        let (scripts, gate) = (
            Scripts::default(),
            Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        );
        let serving = (Arc::clone(&scripts), Arc::clone(&gate));
        let server = HttpServer::start(move |request| {
            let (scripts, gate) = serving.clone();
            async move {
                let is_token = request.target() == TOKEN_PATH;
                let script = &scripts[usize::from(is_token)];
                let reply = script.lock().unwrap().next(request);
                if !is_token {
                    gate.acquire().await.unwrap().forget();
                }
                if reply == SILENCE {
                    std::future::pending::<()>().await;
                }
                Some(reply)
            }
        })
        .await;
        let (url, clock) = (server.url(), clock());
        let carriers = Carriers::new(&settings(carrier, &url, deadline), clock.clone()).unwrap();
        let world = Self {
            carrier,
            clock,
            carriers,
            url,
            scripts,
            gate,
        };
        world.replies([fixtures::delivered(carrier)]);
        world.token_replies((1..=9).map(|n| fixtures::token(carrier, n)));
        world
    }

    fn tracking(&self) -> MutexGuard<'_, Script> {
        self.scripts[0].lock().unwrap()
    }

    fn tokens(&self) -> MutexGuard<'_, Script> {
        self.scripts[1].lock().unwrap()
    }

    /// Sets the tracking answers, in order. The last one is repeated.
    pub(crate) fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.tracking().replies = replies.into_iter().collect();
    }

    /// Sets the answers to token requests, in order. The last one is repeated.
    pub(crate) fn token_replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.tokens().replies = replies.into_iter().collect();
    }

    /// The tracking requests so far.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.tracking().requests.clone()
    }

    /// The token requests so far.
    pub(crate) fn token_requests(&self) -> Vec<Received> {
        self.tokens().requests.clone()
    }

    /// The numbers of tracking and of token requests so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.tracking().requests.len(), self.tokens().requests.len())
    }

    pub(crate) fn count(&self) -> usize {
        self.counts().0
    }

    /// Delays all tracking answers until [`World::resume`].
    pub(crate) fn pause(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn resume(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) async fn look_up(&self) -> Lookup {
        self.carriers.look_up(self.carrier, &number()).await
    }

    pub(crate) async fn finds(&self) -> TrackingReport {
        match self.look_up().await {
            Lookup::Found(tracking_report) => tracking_report,
            other => panic!("{:?}: {other:?}", self.carrier),
        }
    }

    /// The reason for which a look-up has no answer.
    pub(crate) async fn fails(&self) -> String {
        reason(self.look_up().await)
    }

    pub(crate) async fn fails_with(&self, reply: Reply) -> String {
        self.replies([reply]);
        self.fails().await
    }

    /// Asserts that look-ups succeed, and clears the requests. Two successes keep the breaker closed after a
    /// failure.
    pub(crate) async fn recovers(&self) {
        self.replies([fixtures::delivered(self.carrier)]);
        for _ in 0..2 {
            self.finds().await;
        }
        self.tracking().requests.clear();
        self.tokens().requests.clear();
    }
}

/// Checks several carriers concurrently. All worlds exist before the first check: creating an HTTP client
/// blocks the thread for longer than some deadlines.
pub(crate) async fn each(carriers: &[Carrier], deadline: Duration, check: impl AsyncFn(&World)) {
    let mut worlds = Vec::new();
    for carrier in carriers {
        worlds.push(World::within(*carrier, deadline).await);
    }
    join_all(worlds.iter().map(|world| check(world))).await;
}

pub(crate) fn reason(lookup: Lookup) -> String {
    match lookup {
        Lookup::Unavailable(reason) => reason,
        other => panic!("not unavailable: {other:?}"),
    }
}

pub(crate) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap();
}
