//! Connections to the server: opened, protected, signed in, and looked at before they are used again.

use std::{io, net::SocketAddr, time::Duration};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use lettre::transport::smtp::{
    Error as SmtpError,
    authentication::{Credentials as Account, DEFAULT_MECHANISMS},
    client::{AsyncSmtpConnection, Certificate, TlsParameters},
    extension::ClientId,
};
use secrecy::ExposeSecret as _;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::{
    cautious::Cautious,
    failure::{SmtpFailure, Stage},
};
use crate::{Credentials, Security, SettingsError, SmtpSettings};

/// Mails over one connection; many servers allow no more than a hundred.
const MAILS_PER_CONNECTION: usize = 50;

/// How long an unused connection may take to prove that it is alive.
const PROOF_OF_LIFE: Duration = Duration::from_secs(2);

/// Opens connections for the pool.
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
    /// False while an answer may be outstanding. The next mail would take it for its own.
    pub in_step: bool,
}

impl Dialer {
    pub(super) fn new(settings: &SmtpSettings) -> Result<Self, SettingsError> {
        let tls = || trusted(settings).map_err(|why| SettingsError::Tls(why.into()));
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
                let stream = Box::new(self.reach().await?);
                AsyncSmtpConnection::connect_with_transport(stream, &self.hello).await
            }
            Protection::StartTls(tls) => {
                let stream = Cautious::new(self.reach().await?);
                self.upgrade(stream, tls.clone()).await
            }
            Protection::Tls(tls) => {
                let server = (self.host.as_str(), self.port);
                let limit = Some(self.connect_timeout);
                AsyncSmtpConnection::connect_tokio1(server, limit, &self.hello, Some(tls.clone()), None).await
            }
        };
        opened.map_err(|error| SmtpFailure::at(Stage::Opening, error))
    }

    async fn upgrade(&self, stream: Cautious, tls: TlsParameters) -> Result<AsyncSmtpConnection, SmtpError> {
        let mut connection =
            AsyncSmtpConnection::connect_with_transport(Box::new(stream), &self.hello).await?;
        connection.starttls(tls, &self.hello).await?;
        Ok(connection)
    }

    /// Tries the server's addresses in turn.
    async fn reach(&self) -> Result<TcpStream, SmtpFailure> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the server's name has no address");
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        for address in addresses.map_err(SmtpFailure::Unreachable)? {
            match timeout(self.connect_timeout, connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(elapsed) => last = elapsed.into(),
            }
        }
        Err(SmtpFailure::Unreachable(last))
    }

    async fn sign_in(&self, connection: &mut AsyncSmtpConnection) -> Result<(), SmtpFailure> {
        let Some(Credentials { username, password }) = &self.credentials else {
            return Ok(());
        };
        let account = Account::new(username.clone(), password.expose_secret().to_owned());
        let answer = connection.auth(DEFAULT_MECHANISMS, &account).await;
        answer
            .map(drop)
            .map_err(|error| SmtpFailure::at(Stage::SigningIn, error))
    }
}

impl Manager for Dialer {
    type Type = Session;
    type Error = SmtpFailure;

    async fn create(&self) -> Result<Session, SmtpFailure> {
        let mut connection = self.open().await?;
        self.sign_in(&mut connection).await?;
        Ok(Session {
            connection,
            in_step: true,
        })
    }

    async fn recycle(&self, session: &mut Session, metrics: &Metrics) -> RecycleResult<SmtpFailure> {
        let used_up = metrics.recycle_count + 1 >= MAILS_PER_CONNECTION;
        if !session.in_step || used_up || metrics.last_used() > self.idle_timeout {
            return Err(RecycleError::message("not to be used again"));
        }
        match timeout(PROOF_OF_LIFE, session.connection.test_connected()).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(RecycleError::message("closed by the server")),
        }
    }
}

/// Small writes go out at once: the content's end would wait for the acknowledgement of the content, 40 ms for each mail.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Trusts the machine's own store and the certificates of the settings, TLS 1.2 and later.
fn trusted(settings: &SmtpSettings) -> Result<TlsParameters, SmtpError> {
    let mut tls = TlsParameters::builder(settings.host.clone());
    if let Some(roots) = &settings.extra_roots {
        tls = tls.add_root_certificate(Certificate::from_pem(roots.as_bytes())?);
    }
    tls.build()
}
