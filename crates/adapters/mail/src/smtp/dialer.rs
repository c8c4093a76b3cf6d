//! Opens connections to the server and checks them before reuse.

use std::{io, net::SocketAddr, time::Duration};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials as Account, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use secrecy::ExposeSecret as _;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::failure::{SmtpFailure, Stage};
use super::starttls_guard::StartTlsGuard;
use crate::{Credentials, Security, SettingsError, SmtpSettings};

/// Maximum number of mails per connection; many servers allow at most a hundred.
const MAILS_PER_CONNECTION: usize = 50;

/// Timeout of the `NOOP` that checks an idle connection.
const NOOP_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Dialer {
    host: String,
    port: u16,
    protection: Protection,
    credentials: Option<Credentials>,
    hello: ClientId,
    idle_timeout: Duration,
    connect_timeout: Duration,
}

enum Protection {
    None,
    StartTls(TlsParameters),
    Tls(TlsParameters),
}

/// A connection that is ready for a mail.
pub(super) struct Session {
    pub connection: AsyncSmtpConnection,
    /// False while an answer may be outstanding: the next mail would read it as its own.
    pub is_reusable: bool,
}

impl Dialer {
    pub(super) fn new(settings: &SmtpSettings) -> Result<Self, SettingsError> {
        let tls = || tls_parameters(settings).map_err(|why| SettingsError::Tls(why.into()));
        Ok(Self {
            host: settings.host.clone(),
            port: settings.port.unwrap_or(settings.security.default_port()),
            protection: match settings.security {
                Security::Plain => Protection::None,
                Security::StartTls => Protection::StartTls(tls()?),
                Security::Tls => Protection::Tls(tls()?),
            },
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
        let opened = match &self.protection {
            Protection::None => {
                let stream = Box::new(StartTlsGuard::new(self.connect().await?));
                AsyncSmtpConnection::connect_with_transport(stream, &self.hello).await
            }
            Protection::StartTls(tls) => {
                let stream = StartTlsGuard::new(self.connect().await?);
                self.upgrade(stream, tls.clone()).await
            }
            Protection::Tls(tls) => {
                let server = (self.host.as_str(), self.port);
                let limit = Some(self.connect_timeout);
                AsyncSmtpConnection::connect_tokio1(server, limit, &self.hello, Some(tls.clone()), None).await
            }
        };
        opened.map_err(|error| SmtpFailure::at(Stage::Connect, error))
    }

    async fn upgrade(
        &self,
        stream: StartTlsGuard,
        tls: TlsParameters,
    ) -> Result<AsyncSmtpConnection, SmtpError> {
        let mut connection =
            AsyncSmtpConnection::connect_with_transport(Box::new(stream), &self.hello).await?;
        connection.starttls(tls, &self.hello).await?;
        Ok(connection)
    }

    /// Tries the server's addresses in turn.
    async fn connect(&self) -> Result<TcpStream, SmtpFailure> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the server's name has no address");
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        for address in addresses.map_err(SmtpFailure::Unreachable)? {
            match timeout(self.connect_timeout, connect_to(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
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

/// TLS 1.2 or later. Trusts the machine's certificates and those of the settings.
fn tls_parameters(settings: &SmtpSettings) -> Result<TlsParameters, SmtpError> {
    let mut tls = TlsParameters::builder(settings.host.clone());
    if let Some(roots) = &settings.extra_roots {
        tls = tls.add_root_certificate(Certificate::from_pem(roots.as_bytes())?);
    }
    tls.build()
}
