//! A TCP load balancer in front of several servers, as an operator runs one. New connections go round-robin
//! to the servers that report ready; open connections stay with their server.

use std::future::ready;
use std::net::TcpListener as StdTcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{Client, TestServer, database::blocking, wait_until};

/// Pause between two readiness checks of a server.
const INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a readiness check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a connection waits for a ready server, and [`Balancer::wait_for_servers`] for the number of ready
/// servers.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// A running balancer. It runs in a separate thread, so a test that blocks its runtime does not stop it.
/// Dropping it stops it.
#[derive(Debug)]
pub struct Balancer {
    /// URL of the public listener, without a trailing slash.
    pub base_url: String,
    /// URL of the back office, without a trailing slash.
    pub backoffice_url: String,
    backends: Arc<Backends>,
    _life: oneshot::Sender<()>,
}

/// The address of one of a server's listeners.
type Address = fn(&Backend) -> &str;

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
        let listen = || {
            let listener = StdTcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("a listener has an address");
            (listener, format!("http://{address}"))
        };
        let ((public, base_url), (backoffice, backoffice_url)) = (listen(), listen());
        let backends = Arc::new(Backends::default());
        let (life, end) = oneshot::channel::<()>();
        let shared = Arc::clone(&backends);
        thread::spawn(move || {
            blocking(async {
                tokio::select! {
                    () = accept(public, |backend| &backend.public, &shared) => {}
                    () = accept(backoffice, |backend| &backend.backoffice, &shared) => {}
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
    pub async fn wait_for_servers(&self, count: usize) {
        let is_reached = || ready(self.backends.ready().len() == count);
        let failure = || format!("of {:?} not {count} are ready", self.backends.all());
        wait_until(READY_TIMEOUT, is_reached, failure).await;
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

    /// Connects to the next ready server. A server that refuses the connection is skipped until it reports
    /// ready again.
    async fn connect(&self, address: Address) -> io::Result<TcpStream> {
        let connected = timeout(READY_TIMEOUT, async {
            loop {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let ready = self.ready();
                let Some(backend) = turn.checked_rem(ready.len()).and_then(|index| ready.get(index)) else {
                    sleep(INTERVAL).await;
                    continue;
                };
                match TcpStream::connect(address(backend)).await {
                    Ok(stream) => return stream,
                    Err(_) => backend.is_ready.store(false, Ordering::Release),
                }
            }
        });
        connected.await.map_err(io::Error::from)
    }
}

impl Backend {
    async fn check_readiness(&self, client: &Client) {
        let request = client.get(&format!("http://{}/readyz", self.backoffice));
        let answer = timeout(PROBE_TIMEOUT, request.try_send()).await;
        let is_ready = matches!(answer, Ok(Ok(answer)) if answer.status == 200);
        self.is_ready.store(is_ready, Ordering::Release);
    }
}

/// Polls the readiness of all servers, of each by itself: a slow answer of one hides the stop of no other.
async fn watch(backends: &Backends) {
    let (client, mut watched, mut checks) = (Client::new(), Vec::new(), JoinSet::new());
    loop {
        for backend in backends.all().clone() {
            let own = Arc::downgrade(&backend);
            if watched.iter().any(|other| own.ptr_eq(other)) {
                continue;
            }
            watched.push(own.clone());
            let client = client.clone();
            checks.spawn(async move {
                while let Some(backend) = own.upgrade() {
                    backend.check_readiness(&client).await;
                    drop(backend);
                    sleep(INTERVAL).await;
                }
            });
        }
        sleep(INTERVAL).await;
    }
}

async fn accept(listener: StdTcpListener, address: Address, backends: &Arc<Backends>) {
    listener
        .set_nonblocking(true)
        .expect("the listener is set non-blocking");
    let listener = TcpListener::from_std(listener).expect("the runtime registers the listener");
    loop {
        let (client, _) = listener.accept().await.expect("connections are accepted");
        let backends = Arc::clone(backends);
        tokio::spawn(async move {
            // Either side may close its connection at any time.
            drop(forward(client, address, &backends).await);
        });
    }
}

async fn forward(mut client: TcpStream, address: Address, backends: &Backends) -> io::Result<()> {
    let mut server = backends.connect(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
