//! The HTTP servers: their sockets, and the configuration of actix-web.

mod handshakes;
mod paced;

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_http::{HttpServiceBuilder, error::DispatchError};
use actix_service::{ServiceFactoryExt as _, apply_fn_factory, map_config};
use actix_tls::accept::rustls_0_23::{Acceptor, AcceptorService, TlsStream};
use actix_tls::accept::{TlsError, max_concurrent_tls_connect};
use actix_web::App;
use actix_web::dev::{
    AppConfig, Extensions, Server, Service as _, ServiceFactory, ServiceResponse, fn_service,
};
use actix_web::http::header::{HeaderMap, UPGRADE};
use actix_web::http::{ConnectionType, Method};
use actix_web::web::ServiceConfig;
use anyhow::{Context as _, anyhow};
use futures_util::FutureExt as _;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustls::InvalidMessage;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use web::response;

use crate::wiring::Shared;
use handshakes::Handshakes;
use paced::{Exchange, Paced};

/// Connections that wait to be accepted; the kernel has its own limit (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// How long a connection that is closing is read, so that its client receives the last response.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How one listener differs from the others.
pub(crate) struct ListenerOptions {
    /// The name in log and metrics.
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    pub(crate) tls: Option<rustls::ServerConfig>,
    /// Whether a client that has shut down its sending side still gets its response.
    pub(crate) half_closed: bool,
}

/// Starts a server on a listening socket. `configure` is called in each thread. Once the process is draining, every
/// response closes its connection.
pub(crate) fn serve<C: FnOnce(&mut ServiceConfig)>(
    shared: &Shared,
    listener: TcpListener,
    options: ListenerOptions,
    configure: impl Fn() -> C + Send + Clone + 'static,
) -> anyhow::Result<Server> {
    let (settings, draining) = (&shared.config.server, Arc::clone(&shared.draining));
    let (header_timeout, keep_alive) = (settings.header_timeout.0, settings.keep_alive.0);
    let max_connections = usize::try_from(settings.max_connections).unwrap_or(usize::MAX);
    // actix-http has no time limit for writes. Accepted sockets inherit this one: the kernel resets a
    // connection whose client does not read its response.
    let unacknowledged = keep_alive.saturating_add(header_timeout);
    set_tcp_user_timeout(
        &listener,
        u32::try_from(unacknowledged.as_millis()).unwrap_or(u32::MAX),
    )
    .context("cannot set TCP_USER_TIMEOUT")?;
    // Handshakes count as connections, so this rate is set too high to limit them separately.
    max_concurrent_tls_connect(max_connections);
    let server = Server::build()
        .workers(options.threads)
        .max_concurrent_connections(max_connections.div_ceil(options.threads))
        .shutdown_timeout(whole_seconds(settings.shutdown_timeout.0))
        .disable_signals();
    let stop = server.graceful_shutdown_signal();
    let http = Http {
        header_timeout,
        keep_alive,
        half_closed: options.half_closed,
        draining,
        stopping: move || {
            let stop = stop.clone();
            async move { stop.notified().await }
        },
    };
    let server = match options.tls {
        None => server.listen("http", listener, move || {
            fn_service(move |tcp: TcpStream| {
                ready(accepted(tcp, header_timeout, |tcp| tcp).map_err(DispatchError::Io))
            })
            .and_then(http.clone().service(configure()))
        }),
        Some(mut tls) => {
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            let (name, warned) = (options.name, Arc::new(AtomicBool::new(false)));
            server.listen("https", listener, move || {
                let mut acceptor = Acceptor::new(tls.clone());
                acceptor.set_handshake_timeout(header_timeout);
                let http = http.clone().service(configure());
                let (warned, handshakes) = (Arc::clone(&warned), Handshakes::new());
                let in_turn = move |tcp: TcpStream, acceptor: &AcceptorService| {
                    // A peer that has gone has no address any more.
                    let client = tcp
                        .peer_addr()
                        .map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
                    let made = timeout(header_timeout, handshakes.in_turn(client, acceptor.call(tcp)));
                    // The acceptor's own limit is looked at in a turn alone.
                    made.map(|made| made.unwrap_or(Err(TlsError::Timeout)))
                };
                apply_fn_factory::<_, Acceptor, _, _, _, TcpStream, _, _>(acceptor, in_turn)
                    .map_err(move |error| {
                        count_plaintext(&error, name, &warned);
                        error.into_service_error()
                    })
                    .and_then(fn_service(move |tls: TlsStream<TcpStream>| {
                        let accepted = accepted(tls, header_timeout, |tls| tls.get_ref().0);
                        ready(accepted.map_err(|error| TlsError::Service(DispatchError::Io(error))))
                    }))
                    .and_then(http.map_err(TlsError::Service))
            })
        }
    };
    Ok(server.context("cannot serve")?.run())
}

/// Counts a client that speaks no TLS, which sees the connection close without an HTTP answer; the first one
/// is logged.
fn count_plaintext(error: &TlsError<io::Error, Infallible>, listener: &'static str, warned: &AtomicBool) {
    let TlsError::Tls(error) = error else { return };
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    if cause != Some(&rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) {
        return;
    }
    metrics::counter!("tls_plaintext_connections_total", "listener" => listener).increment(1);
    if !warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            listener,
            "a client speaks plain HTTP to this TLS listener, and is refused: its URL, or the proxy before it, has to use https"
        );
    }
}

/// How HTTP is spoken on a connection.
#[derive(Clone)]
struct Http<S> {
    header_timeout: Duration,
    keep_alive: Duration,
    half_closed: bool,
    draining: Arc<AtomicBool>,
    /// Resolves when the server is stopped.
    stopping: S,
}

impl<S: Fn() -> F + 'static, F: Future<Output = ()> + 'static> Http<S> {
    fn service<T: AsyncRead + AsyncWrite + Unpin + 'static>(
        self,
        configure: impl FnOnce(&mut ServiceConfig),
    ) -> impl ServiceFactory<Accepted<T>, Config = (), Response = (), Error = DispatchError, InitError = ()>
    {
        let draining = self.draining;
        let app = App::new()
            .wrap_fn(move |mut request, app| {
                let (exchange, payload) = Exchange::of(&mut request);
                // An offered upgrade is ignored: the request is served, with its body, and the connection closes.
                let upgrades = request.head().upgrade() || request.headers().contains_key(UPGRADE);
                // actix-web reads the payload of these until the connection ends.
                let is_endless = request.method() == Method::CONNECT || offers_websocket(request.headers());
                let mut unread = Some(payload);
                if !is_endless && let Some(payload) = unread.take() {
                    request.set_payload(payload);
                }
                let draining = Arc::clone(&draining);
                let answering = app.call(request);
                async move {
                    exchange.body_may_come().await;
                    let (request, mut response) = answering.await?.into_parts();
                    if let Some(payload) = unread {
                        response = response::closing(response, payload);
                    } else if upgrades || draining.load(Ordering::Acquire) {
                        response.head_mut().set_connection_type(ConnectionType::Close);
                    }
                    Ok(ServiceResponse::new(request, exchange.until_sent(response)))
                }
            })
            .configure(configure);
        HttpServiceBuilder::default()
            .graceful_shutdown_signal(self.stopping)
            .keep_alive(self.keep_alive)
            .client_request_timeout(self.header_timeout)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .h1_allow_half_closed(self.half_closed)
            .on_connect_ext(|connection: &Paced<T>, data: &mut Extensions| {
                data.insert(Rc::clone(&connection.gate));
            })
            .h1(map_config(app, |()| AppConfig::default()).map_err(|error| error.error_response()))
    }
}

fn offers_websocket(headers: &HeaderMap) -> bool {
    let mut offered = headers.get_all(UPGRADE);
    offered.any(|protocol| {
        protocol
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"websocket")
    })
}

/// A connection and its client's address.
type Accepted<T> = (Paced<T>, Option<SocketAddr>);

/// Fails if the client has reset the connection, which has no address then: nobody waits for an answer.
fn accepted<T>(
    connection: T,
    header_timeout: Duration,
    tcp: impl Fn(&T) -> &TcpStream,
) -> io::Result<Accepted<T>> {
    let tcp = tcp(&connection);
    let client = tcp.peer_addr()?;
    // Nagle's algorithm would only delay responses.
    drop(tcp.set_nodelay(true));
    // actix-http itself answers the first head with 408.
    let head_timeout = header_timeout + Duration::from_secs(1);
    Ok((Paced::new(connection, head_timeout), Some(client)))
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// `SO_SNDBUF`, which accepted connections inherit: bounds what the kernel buffers for a client that does not read, by
/// default up to 4 MB.
const SEND_BUFFER: u32 = 64 * 1024;

/// A bound socket that does not listen yet.
pub(crate) struct BoundSocket {
    socket: TcpSocket,
    address: SocketAddr,
}

impl BoundSocket {
    /// Binds an address. Must be called within a runtime. An error names `flag`, which selects another
    /// address.
    pub(crate) fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<Self> {
        Self::try_bind(address).map_err(|error| explained(error, address, flag))
    }

    fn try_bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Connections of an earlier run may still be closing. A free port is for this socket alone: another one that
        // has it too could not listen.
        socket.set_reuseaddr(address.port() != 0)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
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
    use tokio::io::{AsyncWriteExt as _, Interest};

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

    #[tokio::test]
    async fn a_connection_that_its_client_has_reset_is_not_served() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for reset in [false, true] {
            let mut client = TcpStream::connect(address).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            if reset {
                client.set_zero_linger().unwrap();
                drop(client);
                server.ready(Interest::ERROR).await.unwrap();
            }
            assert_eq!(accepted(server, Duration::ZERO, |tcp| tcp).is_err(), reset);
        }
    }
}
