//! Counts the statements and round trips to PostgreSQL per request, on the wire, so that an additional one is noticed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use blackbox::{Pair, TRADE_SCOPES, World, line, order_body};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use testkit::TestDatabase;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio_postgres::config::Host;

use crate::PROGRAM;

/// Statements and round trips of one request without concurrent requests.
const ASKED: [(&str, usize, usize); 9] = [
    ("GET /v1/me", 1, 1),
    ("GET /v1/offers/{id}", 2, 2),
    ("GET /v1/offers", 2, 2),
    ("GET /v1/orders", 2, 2),
    ("PATCH /v1/offers/{id}, keyed", 10, 6),
    ("POST /v1/orders/{id}/shipments, keyed", 13, 7),
    ("POST /orders, keyed", 12, 7),
    ("POST /oauth/token, client_credentials", 4, 4),
    ("POST /oauth/token, refresh_token", 11, 7),
];
/// Repetitions of each request; the minimum counts, since connecting, preparing and background work only add.
const REPEATS: usize = 12;

#[tokio::test]
async fn no_request_asks_more_than_it_did() {
    let database = TestDatabase::create().await;
    let tap = Tap::to(&database);
    let world = World::over(PROGRAM, TestDatabase::elsewhere(&tap.url), |options| {
        options
            .in_one_process()
            .set("SELLER_API__SERVER__WORKERS", "none")
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000)
    })
    .await;
    let trader = world.trader().await;
    let (seller, token) = (&trader.seller, trader.token.as_str());
    let offer = world.any_offer(seller, json!({"stock": 1_000})).await;
    let mut orders = Vec::new();
    for _ in 0..REPEATS {
        orders.push(world.paid(&[line(seller, &offer, 1)], json!({})).await.id);
    }
    let application = world.application(seller, &TRADE_SCOPES).await;
    let mut member = world.member().await;
    let partner = world.partner(seller, &TRADE_SCOPES).await;
    let mut pair = world.pair(&mut member.browser, &partner, "offers:read").await;

    let get = async |path: &str| drop(world.get(token, path).await.expect(200));
    let parcel = |n: usize| json!({"carrier": "other", "tracking_number": format!("PARCEL{n}")});
    let price = |n: usize| json!({"price": {"amount": 10_000 + n, "currency": "PLN"}});
    let order = |_| order_body(&[line(seller, &offer, 1)], json!({}));
    let asked = [
        tap.fewest(async |_| get("/v1/me").await).await,
        tap.fewest(async |_| get(&format!("/v1/offers/{offer}")).await)
            .await,
        tap.fewest(async |_| get("/v1/offers?limit=10").await).await,
        tap.fewest(async |_| get("/v1/orders?limit=10").await).await,
        tap.fewest(async |n| {
            let patching = world.patching(token, &offer, &price(n));
            patching
                .header("idempotency-key", &format!("p{n}"))
                .send()
                .await
                .expect(200);
        })
        .await,
        tap.fewest(async |n| {
            let shipping = world.shipping(token, &orders[n], &parcel(n));
            shipping
                .header("idempotency-key", &format!("s{n}"))
                .send()
                .await
                .expect(201);
        })
        .await,
        tap.fewest(async |n| {
            let placing = world.office(Method::POST, "/orders").json(&order(n));
            placing
                .header("idempotency-key", &format!("o{n}"))
                .send()
                .await
                .expect(201);
        })
        .await,
        tap.fewest(async |_| drop(world.token(&application).await)).await,
        tap.fewest(async |_| pair = Pair::of(world.refresh(&partner, &pair.refresh).await))
            .await,
    ];
    let found: Vec<_> = ASKED
        .iter()
        .zip(asked)
        .map(|((name, ..), asked)| (*name, asked.statements, asked.round_trips))
        .collect();
    assert_eq!(found, ASKED);
}

/// The statements and round trips of a request.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    statements: usize,
    /// How often a connection waited for an answer with nothing else in flight.
    round_trips: usize,
}

/// A socket that forwards everything to a database and counts.
struct Tap {
    url: String,
    asked: Arc<Mutex<Asked>>,
    _folder: TempDir,
}

impl Tap {
    fn to(database: &TestDatabase) -> Self {
        let config: tokio_postgres::Config = database.url().parse().unwrap();
        let Some(Host::Unix(target)) = config.get_hosts().first() else {
            panic!("the test's cluster listens on a unix socket");
        };
        let (user, name) = (config.get_user().unwrap(), config.get_dbname().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(".s.PGSQL.5432");
        let host = folder.path().to_str().unwrap().replace('/', "%2F");
        let asked = Arc::default();
        let listener = UnixListener::bind(socket).unwrap();
        tokio::spawn(accept(listener, target.join(".s.PGSQL.5432"), Arc::clone(&asked)));
        Self {
            url: format!("postgres://{user}@{host}/{name}"),
            asked,
            _folder: folder,
        }
    }

    fn take(&self) -> Asked {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Sends a request several times and returns the minimum of statements and round trips.
    async fn fewest(&self, mut request: impl AsyncFnMut(usize)) -> Asked {
        let mut fewest = Asked {
            statements: usize::MAX,
            round_trips: usize::MAX,
        };
        for n in 0..REPEATS {
            self.take();
            request(n).await;
            let asked = self.take();
            fewest.statements = fewest.statements.min(asked.statements);
            fewest.round_trips = fewest.round_trips.min(asked.round_trips);
        }
        fewest
    }
}

async fn accept(listener: UnixListener, target: PathBuf, asked: Arc<Mutex<Asked>>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass_on(client, target.clone(), Arc::clone(&asked)));
    }
}

async fn pass_on(mut client: UnixStream, target: PathBuf, asked: Arc<Mutex<Asked>>) -> std::io::Result<()> {
    let mut server = UnixStream::connect(target).await?;
    let (mut from_client, mut from_server) = ([0; 16 * 1024], [0; 16 * 1024]);
    // A client's first message has no type byte.
    let (mut questions, mut answers) = (Messages::after_untyped(true), Messages::after_untyped(false));
    let mut unanswered: u64 = 0;
    loop {
        tokio::select! {
            // Answers are counted before the questions that follow them.
            biased;
            read = server.read(&mut from_server) => {
                let bytes = &from_server[..read?];
                // ReadyForQuery. The first one does not follow a query.
                answers.feed(bytes, |kind, _| unanswered = unanswered.saturating_sub(u64::from(kind == b'Z')));
                client.write_all(bytes).await?;
                if bytes.is_empty() {
                    return Ok(());
                }
            }
            read = client.read(&mut from_client) => {
                let bytes = &from_client[..read?];
                questions.feed(bytes, |kind, content| {
                    let mut asked = asked.lock().unwrap();
                    asked.statements += match kind {
                        // Execute.
                        b'E' => 1,
                        // A simple query with one or more statements.
                        b'Q' => String::from_utf8_lossy(content).split(';').filter(|sql| sql.len() > 1).count(),
                        _ => 0,
                    };
                    // Query and Sync are answered by ReadyForQuery.
                    if matches!(kind, b'Q' | b'S') {
                        asked.round_trips += usize::from(unanswered == 0);
                        unanswered += 1;
                    }
                });
                server.write_all(bytes).await?;
                if bytes.is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

/// Splits one direction's bytes into messages (PostgreSQL documentation, "Message Formats").
struct Messages {
    buffer: Vec<u8>,
    typed: bool,
}

impl Messages {
    fn after_untyped(first: bool) -> Self {
        let buffer = Vec::new();
        Self {
            buffer,
            typed: !first,
        }
    }

    /// Calls `each` with type and content of every message that `bytes` completes.
    fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        self.buffer.extend_from_slice(bytes);
        loop {
            let before = usize::from(self.typed);
            let Some(length) = self.buffer.get(before..before + 4) else {
                return;
            };
            let length = u32::from_be_bytes(length.try_into().unwrap());
            let end = before + usize::try_from(length).unwrap();
            let Some(content) = self.buffer.get(before + 4..end) else {
                return;
            };
            if self.typed {
                each(self.buffer[0], content);
            }
            self.typed = true;
            self.buffer.drain(..end);
        }
    }
}
