//! Opens connections to the server and checks them before reuse.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use lettre::transport::smtp::authentication::{Credentials as Account, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::Starttls;
use lettre::transport::smtp::extension::{ClientId, Extension};
use lettre::transport::smtp::response::Severity;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join, split};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use super::expect;
use super::failure::{SmtpFailure, Stage};
use super::reply_limit::{Limits, PLAIN, ReplyLimit, WITHIN_TLS};
use crate::{Credentials, Security, SettingsError, SmtpSettings};

/// Maximum number of mails per connection; many servers allow at most a hundred.
const MAILS_PER_CONNECTION: usize = 50;

/// Timeout of the `NOOP` that checks an idle connection.
const NOOP_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Dialer {
    host: String,
    port: u16,
    tls: Option<Tls>,
    credentials: Option<Credentials>,
    hello: ClientId,
    idle_timeout: Duration,
    connect_timeout: Duration,
}

/// TLS with the server of this name.
struct Tls {
    connector: TlsConnector,
    server_name: ServerName<'static>,
    /// Whether the server is asked for it first.
    by_command: bool,
}

/// A connection that is ready for a mail.
pub(super) struct Session {
    pub connection: AsyncSmtpConnection,
    /// False while an answer may be outstanding: the next mail would read it as its own.
    pub is_reusable: bool,
}

impl Dialer {
    pub(super) fn new(settings: &SmtpSettings) -> Result<Self, SettingsError> {
        Ok(Self {
            host: settings.host.clone(),
            port: settings.port.unwrap_or(settings.security.default_port()),
            tls: tls(settings)?,
            credentials: settings.credentials.clone(),
            hello: settings
                .hello_name
                .clone()
                .map_or_else(ClientId::default, ClientId::Domain),
            idle_timeout: settings.idle_timeout,
            connect_timeout: settings.connect_timeout,
        })
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, SmtpFailure> {
        let (mut stream, peer) = self.connect().await?;
        let Some(tls) = &self.tls else {
            return self.greet(stream, peer, PLAIN).await;
        };
        // The client expects a greeting of every server, and gets none within TLS that was asked for.
        let mut greeting: &[u8] = b"";
        if tls.by_command {
            stream = self.ask_for_tls(stream, peer).await?;
            greeting = b"220 TLS\r\n";
        }
        let stream = tls.connector.connect(tls.server_name.clone(), stream).await;
        let (reader, writer) = split(stream.map_err(SmtpFailure::Tls)?);
        self.greet(join(greeting.chain(reader), writer), peer, WITHIN_TLS)
            .await
    }

    /// Sends `STARTTLS`, and returns the stream on which the handshake may begin.
    ///
    /// The client reads one byte at a time, and so nothing beyond the reply. What a man in the middle appended to it
    /// ("response injection", see RFC 3207 §6) then reaches the handshake, which fails.
    async fn ask_for_tls(&self, stream: TcpStream, peer: SocketAddr) -> Result<TcpStream, SmtpFailure> {
        let stream = stream.into_std().map_err(SmtpFailure::Unreachable)?;
        let again = stream.try_clone().and_then(TcpStream::from_std);
        let mut client = self
            .greet(again.map_err(SmtpFailure::Unreachable)?, peer, PLAIN)
            .await?;
        if !client.server_info().supports_feature(Extension::StartTls) {
            return Err(SmtpFailure::NoStartTls);
        }
        let answer = client.command(Starttls).await;
        expect(Stage::Connect, answer, Severity::PositiveCompletion)?;
        TcpStream::from_std(stream).map_err(SmtpFailure::Unreachable)
    }

    /// Reads the greeting and sends `EHLO`.
    async fn greet<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        limits: Limits,
    ) -> Result<AsyncSmtpConnection, SmtpFailure>
    where
        S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug + 'static,
    {
        let stream = Box::new(ReplyLimit {
            stream,
            peer,
            limits,
            reply: 0,
        });
        let greeted = AsyncSmtpConnection::connect_with_transport(stream, &self.hello).await;
        greeted.map_err(|error| SmtpFailure::at(Stage::Connect, error))
    }

    /// Tries the server's addresses in turn.
    async fn connect(&self) -> Result<(TcpStream, SocketAddr), SmtpFailure> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the server's name has no address");
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        for address in addresses.map_err(SmtpFailure::Unreachable)? {
            match timeout(self.connect_timeout, connect_to(address)).await {
                Ok(Ok(stream)) => return Ok((stream, address)),
                Ok(Err(error)) => last = error,
                Err(elapsed) => last = elapsed.into(),
            }
        }
        Err(SmtpFailure::Unreachable(last))
    }

    async fn authenticate(&self, connection: &mut AsyncSmtpConnection) -> Result<(), SmtpFailure> {
        let Some(Credentials { username, password }) = &self.credentials else {
            return Ok(());
        };
        let account = Account::new(username.clone(), password.expose_secret().to_owned());
        let answer = connection.auth(DEFAULT_MECHANISMS, &account).await;
        answer
            .map(drop)
            .map_err(|error| SmtpFailure::at(Stage::Auth, error))
    }
}

impl Manager for Dialer {
    type Type = Session;
    type Error = SmtpFailure;

    async fn create(&self) -> Result<Session, SmtpFailure> {
        let mut connection = self.open().await?;
        self.authenticate(&mut connection).await?;
        Ok(Session {
            connection,
            is_reusable: true,
        })
    }

    async fn recycle(&self, session: &mut Session, metrics: &Metrics) -> RecycleResult<SmtpFailure> {
        let used_up = metrics.recycle_count + 1 >= MAILS_PER_CONNECTION;
        if !session.is_reusable || used_up || metrics.last_used() > self.idle_timeout {
            return Err(RecycleError::message("used up"));
        }
        match timeout(NOOP_TIMEOUT, session.connection.test_connected()).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(RecycleError::message("closed by the server")),
        }
    }
}

/// Connects with `TCP_NODELAY`, since Nagle's algorithm would delay the end of each mail by 40 ms.
async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// None for [`Security::Plain`].
fn tls(settings: &SmtpSettings) -> Result<Option<Tls>, SettingsError> {
    if settings.security == Security::Plain {
        return Ok(None);
    }
    let server_name = settings.host.clone().try_into();
    let config = outgoing_tls::client_config(settings.extra_roots.as_deref());
    Ok(Some(Tls {
        server_name: server_name.map_err(|_| SettingsError::Host)?,
        connector: Arc::new(config.map_err(SettingsError::Tls)?).into(),
        by_command: settings.security == Security::StartTls,
    }))
}
