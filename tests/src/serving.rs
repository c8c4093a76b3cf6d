//! Servers besides a world's first one, with their answers checked against the OpenAPI document too; and
//! ports for a test's own servers.

use std::io;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testkit::{ServerOptions, StatementProxy, TestDatabase, TestServer, own_loopback};
use tokio::time::sleep;

use crate::{World, documented};

/// Starts a server without a world over the database at `url`, in any state. The server listens but may not
/// be ready.
pub async fn listen(options: &ServerOptions, url: &str) -> TestServer {
    let server = TestServer::listen(options, url).await;
    documented::watch(&server.base_url, &server.backoffice_url);
    server
}

/// A free port below those that the system gives out.
pub fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = 10_000 + listener.local_addr().expect("an address").port() % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Binds a port at a test's own address. `None` if the port is taken at every address that was tried.
pub(crate) async fn on_own_loopback<T>(
    mut bind: impl AsyncFnMut(Ipv4Addr) -> io::Result<T>,
) -> io::Result<Option<T>> {
    for _ in 0..50 {
        match bind(own_loopback()).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse => sleep(Duration::from_millis(20)).await,
            bound => return bound.map(Some),
        }
    }
    Ok(None)
}

/// Locks the state that a server shares with its test, even after a failed assertion.
pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A world whose server connects to its database through a proxy.
    pub async fn over_a_link(
        program: &str,
        settings: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> (Self, StatementProxy) {
        let database = TestDatabase::create().await;
        let link = StatementProxy::to(&database);
        let mut world = Self::over(program, database, settings).await;
        let options = world.options.clone();
        world.served_by(&options, link.url()).await;
        (world, link)
    }

    /// Replaces the server by one with these options that connects to the database at `url`.
    pub async fn served_by(&mut self, options: &ServerOptions, url: &str) {
        let operator_token = self.server.operator_token.clone();
        self.server = listen(options, url).await;
        self.server.operator_token = operator_token;
        self.server.ready().await;
    }

    /// Starts another server on the database, with its own settings.
    pub async fn serving(&self, options: &ServerOptions) -> TestServer {
        let server = TestServer::start(options, &self.database).await;
        documented::watch(&server.base_url, &server.backoffice_url);
        server
    }

    /// Stops the server and starts another one with changed settings.
    pub async fn restart(&mut self, settings: impl FnOnce(ServerOptions) -> ServerOptions) {
        self.options = settings(self.options.clone());
        self.server.terminate();
        self.server = self.serving(&self.options).await;
    }
}
