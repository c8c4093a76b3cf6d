//! A TCP load balancer in front of several servers, as an operator runs one. New connections go round-robin to the servers that
//! report ready; open connections stay with their server.

use std::{
    io,
    net::TcpListener as StdTcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{Client, TestServer};

/// Pause between two readiness checks of a server.
const INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a readiness check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a connection waits for a ready server, and [`Balancer::sends_to`] for the number of ready servers.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// A running balancer. It runs in a separate thread, so a test that blocks its runtime does not stop it. Dropping it stops it.
#[derive(Debug)]
pub struct Balancer {
    /// URL of the public listener, without a trailing slash.
    pub base_url: String,
    /// URL of the back office, without a trailing slash.
    pub backoffice_url: String,
    backends: Arc<Backends>,
    _life: oneshot::Sender<()>,
}

/// Which of a server's listeners.
#[derive(Debug, Clone, Copy)]
enum Side {
    Public,
    Backoffice,
}

#[derive(Debug, Default)]
struct Backends {
    all: Mutex<Vec<Arc<Backend>>>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Backend {
    public: String,
    backoffice: String,
    is_ready: AtomicBool,
}

impl Balancer {
    /// Listens on two free ports, without any backend yet.
    pub fn start() -> Self {
        let listen = || StdTcpListener::bind("127.0.0.1:0").expect("a free port");
        let (public, backoffice) = (listen(), listen());
        let url = |listener: &StdTcpListener| {
            let address = listener.local_addr().expect("a listener has an address");
            format!("http://{address}")
        };
        let (base_url, backoffice_url) = (url(&public), url(&backoffice));
        let backends = Arc::new(Backends::default());
        let (life, end) = oneshot::channel::<()>();
        let shared = Arc::clone(&backends);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async {
                tokio::select! {
                    () = take(public, Side::Public, &shared) => {}
                    () = take(backoffice, Side::Backoffice, &shared) => {}
                    () = watch(&shared) => {}
                    // The sender is dropped with the balancer.
                    _ = end => {}
                }
            });
        });
        Self {
            base_url,
            backoffice_url,
            backends,
            _life: life,
        }
    }

    /// Adds a server. It gets connections once it reports ready.
    pub fn add(&self, server: &TestServer) {
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        let backend = Backend {
            public: address(&server.base_url),
            backoffice: address(&server.backoffice_url),
            is_ready: AtomicBool::new(false),
        };
        self.backends.all().push(Arc::new(backend));
    }

    /// Removes a server. Its open connections stay.
    pub fn remove(&self, server: &TestServer) {
        let is_other = |backend: &Arc<Backend>| !server.base_url.ends_with(&backend.public);
        self.backends.all().retain(is_other);
    }

    /// Waits until exactly this many servers are ready.
    pub async fn sends_to(&self, count: usize) {
        let reached = timeout(READY_TIMEOUT, async {
            while self.backends.ready().len() != count {
                sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(
            reached.await.is_ok(),
            "of {:?} not {count} are ready",
            self.backends.all()
        );
    }
}

impl Backends {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Backend>>> {
        self.all.lock().expect("the list is whole")
    }

    fn ready(&self) -> Vec<Arc<Backend>> {
        let is_ready = |backend: &&Arc<Backend>| backend.is_ready.load(Ordering::Acquire);
        self.all().iter().filter(is_ready).cloned().collect()
    }

    /// Connects to the next ready server. A server that refuses the connection is skipped until it reports ready again.
    async fn connect(&self, side: Side) -> io::Result<TcpStream> {
        let connected = timeout(READY_TIMEOUT, async {
            loop {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let ready = self.ready();
                let Some(backend) = turn.checked_rem(ready.len()).and_then(|place| ready.get(place)) else {
                    sleep(INTERVAL).await;
                    continue;
                };
                match TcpStream::connect(backend.address(side)).await {
                    Ok(stream) => return stream,
                    Err(_) => backend.is_ready.store(false, Ordering::Release),
                }
            }
        });
        connected.await.map_err(io::Error::from)
    }
}

impl Backend {
    fn address(&self, side: Side) -> &str {
        match side {
            Side::Public => &self.public,
            Side::Backoffice => &self.backoffice,
        }
    }

    async fn check_readiness(&self, client: &Client) {
        let request = client.get(&format!("http://{}/readyz", self.backoffice));
        let answer = timeout(PROBE_TIMEOUT, request.try_send()).await;
        let is_ready = matches!(answer, Ok(Ok(answer)) if answer.status == 200);
        self.is_ready.store(is_ready, Ordering::Release);
    }
}

/// Polls the readiness of all servers.
async fn watch(backends: &Backends) {
    let client = Client::new();
    loop {
        let all = backends.all().clone();
        let checks = all.into_iter().map(|backend| {
            let client = client.clone();
            async move { backend.check_readiness(&client).await }
        });
        checks.collect::<JoinSet<_>>().join_all().await;
        sleep(INTERVAL).await;
    }
}

async fn take(listener: StdTcpListener, side: Side, backends: &Arc<Backends>) {
    listener.set_nonblocking(true).expect("the listener can wait");
    let listener = TcpListener::from_std(listener).expect("the runtime takes the listener");
    loop {
        let (client, _) = listener.accept().await.expect("connections are taken");
        let backends = Arc::clone(backends);
        tokio::spawn(async move {
            // Either side may close its connection at any time.
            drop(pass(client, side, &backends).await);
        });
    }
}

async fn pass(mut client: TcpStream, side: Side, backends: &Backends) -> io::Result<()> {
    let mut server = backends.connect(side).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
