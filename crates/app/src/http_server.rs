//! The HTTP servers: their sockets, and the configuration of actix-web.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{
    App, HttpMessage as _, HttpServer,
    dev::{Server, Service as _, ServiceResponse},
    http::{ConnectionType, Method, header::UPGRADE},
    web::ServiceConfig,
};
use anyhow::{Context as _, anyhow};
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::TcpSocket;
use web::response;

use crate::config::ServerConfig;

/// Connections that wait to be accepted; the kernel has its own limit (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// How one listener differs from the others.
pub(crate) struct ListenerOptions {
    pub(crate) threads: usize,
    pub(crate) tls: Option<rustls::ServerConfig>,
    /// Whether a client that has shut down its sending side still gets its response.
    pub(crate) half_closed: bool,
}

/// Starts a server on a listening socket. `configure` is called in each thread. Once `draining` is set, every response closes its
/// connection.
pub(crate) fn serve<C: FnOnce(&mut ServiceConfig)>(
    listener: TcpListener,
    settings: &ServerConfig,
    options: ListenerOptions,
    draining: Arc<AtomicBool>,
    configure: impl Fn() -> C + Send + Clone + 'static,
) -> anyhow::Result<Server> {
    let (header_timeout, keep_alive) = (settings.header_timeout.0, settings.keep_alive.0);
    let max_connections = usize::try_from(settings.max_connections).unwrap_or(usize::MAX);
    // actix-web has no time limit for writes. Accepted sockets inherit this one: the kernel resets a connection whose client does not read
    // its response.
    let unacknowledged = keep_alive.saturating_add(header_timeout);
    set_tcp_user_timeout(
        &listener,
        u32::try_from(unacknowledged.as_millis()).unwrap_or(u32::MAX),
    )
    .context("cannot set TCP_USER_TIMEOUT")?;
    let server = HttpServer::new(move || {
        let draining = Arc::clone(&draining);
        App::new()
            .wrap_fn(move |mut request, app| {
                // Without a body, actix-web reads the payload of `Upgrade: websocket` and `CONNECT` to the end of the connection.
                let upgrades = request.head().upgrade()
                    || request.headers().contains_key(UPGRADE)
                    || request.method() == Method::CONNECT;
                let unread = upgrades.then(|| request.take_payload());
                let draining = Arc::clone(&draining);
                let answering = app.call(request);
                async move {
                    let (request, mut response) = answering.await?.into_parts();
                    if let Some(payload) = unread {
                        response = response::closing(response, payload);
                    } else if draining.load(Ordering::Acquire) {
                        response.head_mut().set_connection_type(ConnectionType::Close);
                    }
                    Ok(ServiceResponse::new(request, response))
                }
            })
            .configure(configure())
    })
    .workers(options.threads)
    .max_connections(max_connections.div_ceil(options.threads))
    // Handshakes count as connections, so this rate is set too high to limit them separately.
    .max_connection_rate(max_connections)
    .client_request_timeout(header_timeout)
    .tls_handshake_timeout(header_timeout)
    .keep_alive(keep_alive)
    .h1_allow_half_closed(options.half_closed)
    .tcp_nodelay(true)
    .shutdown_timeout(whole_seconds(settings.shutdown_timeout.0))
    .disable_signals();
    let server = match options.tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls),
        None => server.listen(listener),
    };
    Ok(server.context("cannot serve")?.run())
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// A bound socket that does not listen yet.
pub(crate) struct BoundSocket {
    socket: TcpSocket,
    address: SocketAddr,
}

impl BoundSocket {
    /// Binds an address. Must be called within a runtime. An error names `flag`, which selects another address.
    pub(crate) fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<Self> {
        Self::try_bind(address).map_err(|error| explained(error, address, flag))
    }

    fn try_bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Connections of an earlier run may still be closing.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// The address, with the actual port if 0 was requested.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn listen(self) -> anyhow::Result<TcpListener> {
        let address = self.address;
        let listener = self
            .socket
            .listen(BACKLOG)
            .and_then(tokio::net::TcpListener::into_std);
        listener.with_context(|| format!("cannot listen at {address}"))
    }
}

fn explained(error: io::Error, address: SocketAddr, flag: &str) -> anyhow::Error {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "port {port} of {} is taken by another program: end that one, or choose another port with {flag} (0 takes a \
             free one)",
            address.ip()
        ),
        io::ErrorKind::PermissionDenied => {
            anyhow!("this user may not listen at {address}: choose a port from 1024 on with {flag}")
        }
        io::ErrorKind::AddrNotAvailable => anyhow!(
            "this machine has no address {}: choose one of its own with {flag}, or 0.0.0.0 for all that it has",
            address.ip()
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen at {address} ({flag})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bound_socket_refuses_connections_until_it_listens() {
        let socket = BoundSocket::bind("127.0.0.1:0".parse().unwrap(), "--port").unwrap();
        let address = socket.address();
        assert!(std::net::TcpStream::connect(address).is_err());
        let listener = socket.listen().unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
        assert!(std::net::TcpStream::connect(address).is_ok());
    }
}
