//! How the connections of a listener are served: as the HTTP library does it, but for what it leaves open.
//!
//! The library limits only the head of a connection's first request, and an idle connection only until a byte of the next
//! head has come, and it reads ahead of its answers ([`intake`]). What it serves here is a [`GuardedStream`], which ends a
//! connection whose client takes too long between one request and the next, and knows where a connection stands ([`Course`])
//! because every request passes through [`requests::answer`]. And it holds 13 KiB for a connection that does nothing, so such a
//! connection is taken from it ([`resting`]) until there is something to serve again.

mod answer;
mod course;
mod giving_back;
mod guarded_stream;
mod intake;
mod requests;
mod resting;
mod stopping;
mod transport;

use std::{
    future::ready,
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, error::DispatchError};
use actix_server::{Server, ServerBuilder};
use actix_service::{
    Service, ServiceFactory as _, ServiceFactoryExt as _, apply_fn_factory, fn_factory, fn_service,
    map_config,
};
use actix_web::{App, dev::AppConfig, web::ServiceConfig};
use metrics::Gauge;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use self::{
    course::Course,
    giving_back::GivingBack,
    guarded_stream::GuardedStream,
    intake::Intake,
    resting::{Shelf, rest},
    transport::Transport,
};

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
        let (settings, configure) = (given.clone(), configure.clone());
        fn_factory(move || connections(settings.clone(), address, configure()))
    };
    let server = ServerBuilder::new()
        .workers(settings.threads)
        .max_concurrent_connections(settings.max_connections.div_ceil(settings.threads))
        .shutdown_timeout(whole_seconds(settings.shutdown_timeout))
        .disable_signals()
        .listen(settings.listener, listener, connections)?;
    Ok(server.run())
}

/// What serves the connections of one thread.
async fn connections<C: FnOnce(&mut ServiceConfig)>(
    settings: Settings,
    address: SocketAddr,
    configure: C,
) -> Result<impl Service<TcpStream, Response = (), Error = DispatchError>, ()> {
    // Of the library's notion of where it serves, nothing is used.
    let app = map_config(App::new().configure(configure), |()| AppConfig::default())
        .map_err(|error: actix_web::Error| error.error_response());
    let stopping = Arc::clone(&settings.stopping);
    let requests = apply_fn_factory(app, move |request, app: &_| {
        requests::answer(request, app, &stopping)
    });
    let requests = Rc::new(requests.new_service(()).await?);
    let http = |header_timeout| {
        let requests = Rc::clone(&requests);
        HttpService::build()
            .keep_alive(settings.keep_alive)
            .client_request_timeout(header_timeout)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .h1_allow_half_closed(settings.half_closed)
            .local_addr(address)
            .on_connect_ext(|stream: &GuardedStream, data| {
                data.insert(Rc::clone(stream.course()));
            })
            .h1(fn_factory(move || ready(Ok::<_, ()>(Rc::clone(&requests)))))
            .new_service(())
    };
    let thread = Rc::new(Thread {
        first: http(settings.header_timeout).await?,
        // To the library every head is a first one. Later ones have their time from their course.
        later: http(Duration::ZERO).await?,
        resting: metrics::gauge!("http_connections_resting", "listener" => settings.listener),
        giving_back: GivingBack::default(),
        settings,
    });
    Ok(fn_service(move |stream| {
        let thread = Rc::clone(&thread);
        async move {
            let served = thread.serve(stream).await;
            served.inspect_err(|error| count(thread.settings.listener, error))
        }
    }))
}

/// What the connections of a thread share.
struct Thread<H> {
    settings: Settings,
    /// The HTTP library as it serves new connections.
    first: H,
    /// And as it serves those that have rested.
    later: H,
    resting: Gauge,
    giving_back: GivingBack,
}

impl<H> Thread<H>
where
    H: Service<(GuardedStream, Option<SocketAddr>), Response = (), Error = DispatchError>,
{
    /// Serves a connection to its end. What it takes while nothing is served stays for as long as the connection does, so it is
    /// to be little.
    async fn serve(&self, stream: TcpStream) -> Result<(), DispatchError> {
        let Settings {
            tls,
            header_timeout,
            keep_alive,
            stopping,
            ..
        } = &self.settings;
        let peer = stream.peer_addr().ok();
        let transport = Transport::open(stream, tls.clone(), *header_timeout, stopping).await?;
        let course = Rc::new(Course::new(*keep_alive, *header_timeout));
        let left = Shelf::default();
        let (mut begun, mut http) = ((transport, Intake::new()), &self.first);
        loop {
            let stream = GuardedStream::new(begun, &course, stopping, &left);
            // In a place of its own, which is given back when the connection rests.
            Box::pin(http.call((stream, peer))).await?;
            let Some(transport) = left.take() else {
                return Ok(());
            };
            self.giving_back.begin();
            let Some(woken) = rest(transport, &course, stopping, &self.resting).await? else {
                return Ok(());
            };
            (begun, http) = (woken, &self.later);
        }
    }
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
