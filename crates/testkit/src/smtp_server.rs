//! An SMTP server (RFC 5321) on a loopback address that follows a script and records what it receives.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

/// The server's action at a point of the dialogue.
#[derive(Debug, Clone, Copy)]
pub enum SmtpAction {
    /// Sends this instead of a positive reply.
    Reply(&'static str),
    /// Closes the connection.
    Close,
    /// Sends nothing more and keeps the connection open.
    Silence,
    /// Sends the default reply after this time.
    After(Duration),
}

impl SmtpAction {
    /// Whether the server accepts what it was sent.
    const fn accepts(self) -> bool {
        matches!(self, Self::After(_))
    }
}

/// The server's behaviour. Points are verbs, and: `CONNECT` (the greeting), `BODY` (after the content's first
/// line), `CONTENT` (after its end).
#[derive(Debug, Default)]
pub struct SmtpScript {
    /// The point, a text that selects the commands that contain it, the action, and whether it is taken once.
    actions: Vec<(&'static str, &'static str, SmtpAction, bool)>,
    extensions: Vec<&'static str>,
    tls: Option<Arc<ServerConfig>>,
    is_tls_first: bool,
    closes_after_mail: bool,
}

impl SmtpScript {
    /// Sets the action at `point`, for every time.
    pub fn at(mut self, point: &'static str, action: SmtpAction) -> Self {
        self.add(point, "", action);
        self
    }

    /// Sets the first action at `point`; afterwards the default applies.
    pub fn once(mut self, point: &'static str, action: SmtpAction) -> Self {
        self.actions.push((point, "", action, true));
        self
    }

    /// Adds an extension to the answer to `EHLO`.
    pub fn offers(mut self, extension: &'static str) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Offers STARTTLS.
    pub fn starttls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self.offers("STARTTLS")
    }

    /// Uses TLS from the first byte.
    pub fn tls_first(mut self, config: Arc<ServerConfig>) -> Self {
        (self.tls, self.is_tls_first) = (Some(config), true);
        self
    }

    /// Closes each connection after its first mail.
    pub fn one_mail_per_connection(mut self) -> Self {
        self.closes_after_mail = true;
        self
    }

    /// Sets the action at `point` for commands that contain `text`.
    pub fn add(&mut self, point: &'static str, text: &'static str, action: SmtpAction) {
        self.actions.push((point, text, action, false));
    }

    /// From now on the default replies apply.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    fn acts_at(&self, point: &str) -> bool {
        self.actions.iter().any(|action| action.0 == point)
    }

    fn refuses_at(&self, point: &str) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| action.0 == point && !action.2.accepts())
    }

    fn next(&mut self, point: &str, line: &str) -> Option<SmtpAction> {
        let mut actions = self.actions.iter();
        let at = actions.position(|action| action.0 == point && line.contains(action.1))?;
        let (_, _, action, is_once) = *self.actions.get(at)?;
        if is_once {
            self.actions.remove(at);
        }
        Some(action)
    }

    fn default_reply(&self, point: &str) -> String {
        let reply = match point {
            "CONNECT" => "220 stub.example.com ESMTP",
            "EHLO" => {
                let names = ["stub.example.com"]
                    .into_iter()
                    .chain(self.extensions.iter().copied());
                return format!("250-{}\r\n250 HELP", names.collect::<Vec<_>>().join("\r\n250-"));
            }
            "STARTTLS" => "220 go ahead",
            "AUTH" => "235 2.7.0 welcome",
            "DATA" => "354 go on",
            "QUIT" => "221 bye",
            _ => "250 2.0.0 fine",
        };
        reply.to_owned()
    }
}

#[derive(Debug, Default)]
struct Received {
    commands: Vec<String>,
    contents: Vec<String>,
    accepted: Vec<String>,
    connections: usize,
}

/// A running server. It stops with the runtime of its test.
#[derive(Debug)]
pub struct SmtpServer {
    pub address: SocketAddr,
    dialogue: Dialogue,
    points: mpsc::UnboundedReceiver<String>,
}

impl SmtpServer {
    pub async fn start(script: SmtpScript) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::over(listener, script)
    }

    pub fn over(listener: TcpListener, script: SmtpScript) -> Self {
        let (sender, points) = mpsc::unbounded_channel();
        let dialogue = Dialogue {
            script: Arc::new(Mutex::new(script)),
            received: Arc::default(),
            points: sender,
        };
        let address = listener.local_addr().expect("an address");
        dialogue.clone().listen(listener);
        Self {
            address,
            dialogue,
            points,
        }
    }

    pub fn script(&self) -> MutexGuard<'_, SmtpScript> {
        lock(&self.dialogue.script)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// All commands, in the order of arrival.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.dialogue.received).commands.clone()
    }

    /// The contents that arrived completely, with dots unstuffed.
    pub fn contents(&self) -> Vec<String> {
        lock(&self.dialogue.received).contents.clone()
    }

    /// The contents that got the positive reply.
    pub fn accepted(&self) -> Vec<String> {
        lock(&self.dialogue.received).accepted.clone()
    }

    pub fn connections(&self) -> usize {
        lock(&self.dialogue.received).connections
    }

    /// Waits until a dialogue reaches `point`.
    pub async fn reaches(&mut self, point: &str) {
        while self.points.recv().await.expect("the server runs") != point {}
    }
}

fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}
type Wire = BufReader<Box<dyn Duplex>>;

#[derive(Debug, Clone)]
struct Dialogue {
    script: Arc<Mutex<SmtpScript>>,
    received: Arc<Mutex<Received>>,
    points: mpsc::UnboundedSender<String>,
}

impl Dialogue {
    fn listen(self, listener: TcpListener) {
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                lock(&self.received).connections += 1;
                let dialogue = self.clone();
                // Tests see the result of a dialogue in what was received.
                tokio::spawn(async move { dialogue.run(Box::new(stream)).await.ok() });
            }
        });
    }

    async fn run(self, mut stream: Box<dyn Duplex>) -> io::Result<()> {
        let (tls, is_tls_first, closes_after_mail) = {
            let script = lock(&self.script);
            (script.tls.clone(), script.is_tls_first, script.closes_after_mail)
        };
        let tls = tls.map(TlsAcceptor::from);
        if let (Some(tls), true) = (&tls, is_tls_first) {
            stream = Box::new(tls.accept(stream).await?);
        }
        let mut wire = BufReader::new(stream);
        self.act(&mut wire, "CONNECT", "").await?;
        loop {
            let line = line(&mut wire).await?;
            lock(&self.received).commands.push(line.clone());
            let verb = line.split([' ', ':']).next().unwrap_or_default();
            let is_default = self.act(&mut wire, verb, &line).await?;
            match (verb, &tls) {
                ("DATA", _) if is_default => {
                    self.content(&mut wire).await?;
                    if closes_after_mail {
                        return Ok(());
                    }
                }
                ("STARTTLS", Some(tls)) => {
                    let upgraded = tls.accept(wire.into_inner()).await?;
                    wire = BufReader::new(Box::new(upgraded));
                }
                ("QUIT", _) => return Ok(()),
                _ => {}
            }
        }
    }

    async fn content(&self, wire: &mut Wire) -> io::Result<()> {
        let mut content = String::new();
        loop {
            let line = line(wire).await?;
            if content.is_empty() && lock(&self.script).acts_at("BODY") {
                self.act(wire, "BODY", "").await?;
            }
            if line == "." {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
            content.push_str("\r\n");
        }
        // Recorded before the reply, so that the client's next step can rely on it.
        if !lock(&self.script).refuses_at("CONTENT") {
            lock(&self.received).accepted.push(content.clone());
        }
        lock(&self.received).contents.push(content);
        self.act(wire, "CONTENT", "").await.map(drop)
    }

    /// Returns whether the reply is the default one.
    async fn act(&self, wire: &mut Wire, point: &str, line: &str) -> io::Result<bool> {
        self.points.send(point.to_owned()).ok();
        let action = lock(&self.script).next(point, line);
        let reply = match action {
            Some(SmtpAction::Reply(reply)) => reply.to_owned(),
            Some(SmtpAction::Close) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(SmtpAction::Silence) => std::future::pending().await,
            Some(SmtpAction::After(time)) => {
                sleep(time).await;
                lock(&self.script).default_reply(point)
            }
            None => lock(&self.script).default_reply(point),
        };
        wire.write_all(format!("{reply}\r\n").as_bytes()).await?;
        Ok(action.is_none_or(SmtpAction::accepts))
    }
}

async fn line(wire: &mut Wire) -> io::Result<String> {
    let mut line = String::new();
    if wire.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches("\r\n").to_owned())
}
