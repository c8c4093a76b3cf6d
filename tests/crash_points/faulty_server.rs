//! The server whose statements meet faults.

use blackbox::{World, listen, local_receivers};
use testkit::{Rewrite, ServerOptions, StatementProxy, TestServer};
use tokio::task::JoinHandle;

/// A server with faults, and the proxy to its database.
pub(crate) struct FaultyServer {
    pub(crate) proxy: StatementProxy,
    pub(crate) server: TestServer,
}

impl FaultyServer {
    /// Starts another one with a proxy of its own to the world's database.
    pub(crate) fn start(world: &World, rewrite: Option<Rewrite>) -> JoinHandle<Self> {
        let proxy = StatementProxy::rewriting(&world.database, rewrite);
        let options = through(world.options.clone(), &proxy);
        let operator_token = world.server.operator_token.clone();
        tokio::spawn(async move {
            let mut server = listen(&options, proxy.url()).await;
            server.operator_token = operator_token;
            server.ready().await;
            proxy.set_process(server.id());
            Self { proxy, server }
        })
    }
}

/// Options under which the program reaches the database through a proxy.
pub(crate) fn through(options: ServerOptions, proxy: &StatementProxy) -> ServerOptions {
    options.set("SELLER_API__DATABASE__URL", proxy.url())
}

pub(crate) fn settings(options: ServerOptions) -> ServerOptions {
    local_receivers(options)
        .set("SELLER_API__SERVER__WORKERS", "none")
        // The program starts once for each statement of a request: with one thread it starts faster.
        .set("SELLER_API__SERVER__THREADS", 1)
        // Leases end by advancing the clock.
        .set("SELLER_API__OAUTH__ACCESS_TOKEN_TTL", "30d")
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 100_000)
}
