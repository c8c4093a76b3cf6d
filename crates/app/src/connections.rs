//! How the connections of a listener are served: as the HTTP library does it, but for what it leaves open.
//!
//! The library limits only the head of a connection's first request, and an idle connection only until a byte of the next
//! head has come, and it reads ahead of its answers ([`intake`]). What it serves here is a [`GuardedStream`], which ends a
//! connection whose client takes too long between one request and the next, and knows where a connection stands ([`Course`])
//! because every request passes through [`requests::answer`].

mod course;
mod guarded_stream;
mod intake;
mod requests;
mod stopping;
mod transport;

use std::{io, net::TcpListener, rc::Rc, sync::Arc, time::Duration};

use actix_http::{HttpService, error::DispatchError};
use actix_server::{Server, ServerBuilder};
use actix_service::{ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config};
use actix_web::{App, dev::AppConfig, web::ServiceConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use self::{course::Course, guarded_stream::GuardedStream, transport::Transport};

pub(crate) use self::stopping::Stopping;

/// How long a client may take to close its side of a connection.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// What there is to know about a listener.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Its name in metrics.
    pub(crate) listener: &'static str,
    /// Threads.
    pub(crate) threads: usize,
    /// Connections at a time, over all threads.
    pub(crate) max_connections: usize,
    /// Shakes hands with its clients, where it speaks TLS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// How long a client may take to send a head, and before that to shake hands.
    pub(crate) header_timeout: Duration,
    /// How long a connection may idle.
    pub(crate) keep_alive: Duration,
    /// Whether a client that has closed its side of a connection is taken for one that still reads.
    pub(crate) half_closed: bool,
    /// How long what runs may take to finish.
    pub(crate) shutdown_timeout: Duration,
    /// Whether the end has come.
    pub(crate) stopping: Arc<Stopping>,
}

/// A server over a socket that listens. `configure` is called in each thread.
pub(crate) fn serve<C: FnOnce(&mut ServiceConfig)>(
    listener: TcpListener,
    settings: &Settings,
    configure: impl Fn() -> C + Send + Clone + 'static,
) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let given = settings.clone();
    let connections = move || {
        let Settings {
            listener,
            header_timeout,
            keep_alive,
            half_closed,
            ..
        } = given;
        let (stopping, tls) = (Arc::clone(&given.stopping), given.tls.clone());
        // Of the library's notion of where it serves, nothing is used.
        let app = map_config(App::new().configure(configure()), |()| AppConfig::default())
            .map_err(|error: actix_web::Error| error.error_response());
        let told = Arc::clone(&stopping);
        let requests = apply_fn_factory(app, move |request, app: &_| requests::answer(request, app, &told));
        let http = HttpService::build()
            .keep_alive(keep_alive)
            .client_request_timeout(header_timeout)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .h1_allow_half_closed(half_closed)
            .local_addr(address)
            .on_connect_ext(|stream: &GuardedStream, data| {
                data.insert(Rc::clone(stream.course()));
            })
            .h1(requests);
        let guarded = fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            let (tls, stopping) = (tls.clone(), Arc::clone(&stopping));
            async move {
                let transport = Transport::open(stream, tls, header_timeout, &stopping).await?;
                let course = Course::new(keep_alive, header_timeout);
                Ok::<_, DispatchError>((GuardedStream::new(transport, course, &stopping), peer))
            }
        });
        apply_fn_factory(guarded.and_then(http), move |stream, connections: &_| {
            let connection = actix_service::Service::call(connections, stream);
            async move { connection.await.inspect_err(|error| count(listener, error)) }
        })
    };
    let server = ServerBuilder::new()
        .workers(settings.threads)
        .max_concurrent_connections(settings.max_connections.div_ceil(settings.threads))
        .shutdown_timeout(whole_seconds(settings.shutdown_timeout))
        .disable_signals()
        .listen(settings.listener, listener, connections)?;
    Ok(server.run())
}

/// Counts a connection that was given up for what its client did or failed to do.
fn count(listener: &'static str, error: &DispatchError) {
    let reason = match error {
        DispatchError::Parse(_) => "malformed",
        DispatchError::Io(error) if error.kind() == io::ErrorKind::TimedOut => "slow",
        // What is no TLS.
        DispatchError::Io(error) if error.kind() == io::ErrorKind::InvalidData => "malformed",
        _ => return,
    };
    metrics::counter!("http_connections_cut_total", "listener" => listener, "reason" => reason).increment(1);
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
