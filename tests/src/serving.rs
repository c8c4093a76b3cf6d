//! Servers besides the one a world begins with; their answers are judged by the document like those of any. And where a test
//! has a server of its own.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, TcpListener},
    time::Duration,
};

use testkit::{Link, ServerOptions, TestDatabase, TestServer};
use tokio::time::sleep;

use crate::{World, documented};

/// A server without a world, over the database at `url`, whatever state that is in; it listens, and need not be ready.
pub async fn listen(options: &ServerOptions, url: &str) -> TestServer {
    let server = TestServer::listen(options, url).await;
    documented::watch(&server.base_url);
    server
}

/// An address of the loopback on which a port stays a test's own while nobody listens there, and a port below 1024 is free.
pub fn own_loopback() -> Ipv4Addr {
    // A free port is one that no other test is given at this moment.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let [high, low] = listener.local_addr().expect("an address").port().to_be_bytes();
    Ipv4Addr::new(127, 83, high, low)
}

/// Something bound to a port at an address of its own; nothing where the port is taken at every address that is tried.
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

impl World {
    /// A world whose server reaches its database over a link.
    pub async fn over_a_link(
        program: &str,
        settings: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> (Self, Link) {
        let database = TestDatabase::create().await;
        let link = Link::to(&database);
        let mut world = Self::over(program, database, settings).await;
        let operator_token = world.server.operator_token.clone();
        world.server = listen(&world.options, link.url()).await;
        world.server.operator_token = operator_token;
        world.server.ready().await;
        (world, link)
    }

    /// A further process on the database, with settings of its own.
    pub async fn serving(&self, options: &ServerOptions) -> TestServer {
        let server = TestServer::start(options, &self.database).await;
        documented::watch(&server.base_url);
        server
    }

    /// Ends the server and starts another one, with other settings.
    pub async fn restart(&mut self, settings: impl FnOnce(ServerOptions) -> ServerOptions) {
        self.options = settings(self.options.clone());
        self.server.terminate();
        self.server = self.serving(&self.options).await;
    }
}
