//! An SMTP server on a free port that follows a script and records what it receives.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

/// The server's action at a point of the dialogue.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// Sends this line.
    Reply(&'static str),
    /// Closes the connection.
    Close,
    /// Sends nothing more and keeps the connection open.
    Silence,
}

/// The server's behaviour. Points are verbs, and: `CONNECT` (the greeting), `BODY` (after the content's first line), `CONTENT`
/// (after its end).
#[derive(Default)]
pub(crate) struct Script {
    /// With whether the action is taken once.
    actions: HashMap<&'static str, (Action, bool)>,
    extensions: Vec<&'static str>,
    tls: Option<TlsAcceptor>,
    is_tls_first: bool,
}

impl Script {
    /// Sets the action at `point`, for every time.
    pub(crate) fn at(mut self, point: &'static str, action: Action) -> Self {
        self.actions.insert(point, (action, false));
        self
    }

    /// Sets the first action at `point`; afterwards the default applies.
    pub(crate) fn once(mut self, point: &'static str, action: Action) -> Self {
        self.actions.insert(point, (action, true));
        self
    }

    /// Adds an extension to the answer to `EHLO`.
    pub(crate) fn offers(mut self, extension: &'static str) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Offers STARTTLS.
    pub(crate) fn starttls(mut self, acceptor: TlsAcceptor) -> Self {
        self.tls = Some(acceptor);
        self.offers("STARTTLS")
    }

    /// Uses TLS from the first byte.
    pub(crate) fn tls_first(mut self, acceptor: TlsAcceptor) -> Self {
        (self.tls, self.is_tls_first) = (Some(acceptor), true);
        self
    }

    fn next(&mut self, point: &str) -> Option<Action> {
        let (action, is_once) = *self.actions.get(point)?;
        if is_once {
            self.actions.remove(point);
        }
        Some(action)
    }

    fn default_reply(&self, point: &str) -> String {
        let reply = match point {
            "CONNECT" => "220 stub.example.com ESMTP",
            "EHLO" => {
                let lines = self.extensions.iter().map(|name| ["250-", name, "\r\n"].concat());
                let lines: Vec<_> = lines.collect();
                return ["250-stub.example.com\r\n", &lines.concat(), "250 HELP"].concat();
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

#[derive(Default)]
struct Received {
    commands: Vec<String>,
    contents: Vec<String>,
    connections: usize,
}

/// A running server. It stops with the runtime of its test.
pub(crate) struct Stub {
    port: u16,
    received: Arc<Mutex<Received>>,
    points: mpsc::UnboundedReceiver<String>,
}

impl Stub {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Received>>::default();
        let (sender, points) = mpsc::unbounded_channel();
        let dialogue = Dialogue {
            script: Arc::new(Mutex::new(script)),
            received: Arc::clone(&received),
            points: sender,
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                dialogue.received.lock().unwrap().connections += 1;
                let dialogue = dialogue.clone();
                // Tests see the result of a dialogue in what was received.
                tokio::spawn(async move { dialogue.run(Box::new(stream)).await.ok() });
            }
        });
        Self {
            port,
            received,
            points,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// All commands, in the order of arrival.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.received.lock().unwrap().commands.clone()
    }

    /// The contents that arrived completely, with dots unstuffed.
    pub(crate) fn contents(&self) -> Vec<String> {
        self.received.lock().unwrap().contents.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.received.lock().unwrap().connections
    }

    /// Waits until a dialogue reaches `point`.
    pub(crate) async fn reaches(&mut self, point: &str) {
        while self.points.recv().await.expect("the server runs") != point {}
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}
type Wire = BufReader<Box<dyn Duplex>>;

#[derive(Clone)]
struct Dialogue {
    script: Arc<Mutex<Script>>,
    received: Arc<Mutex<Received>>,
    points: mpsc::UnboundedSender<String>,
}

impl Dialogue {
    async fn run(self, mut stream: Box<dyn Duplex>) -> io::Result<()> {
        let (tls, is_tls_first) = {
            let script = self.script.lock().unwrap();
            (script.tls.clone(), script.is_tls_first)
        };
        if let (Some(tls), true) = (&tls, is_tls_first) {
            stream = Box::new(tls.accept(stream).await?);
        }
        let mut wire = BufReader::new(stream);
        self.act(&mut wire, "CONNECT").await?;
        loop {
            let line = line(&mut wire).await?;
            self.received.lock().unwrap().commands.push(line.clone());
            let verb = line.split(' ').next().unwrap_or_default().to_owned();
            self.act(&mut wire, &verb).await?;
            match (verb.as_str(), &tls) {
                ("DATA", _) => self.content(&mut wire).await?,
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
            let has_body_action = self.script.lock().unwrap().actions.contains_key("BODY");
            if content.is_empty() && has_body_action {
                self.act(wire, "BODY").await?;
            }
            if line == "." {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
            content.push_str("\r\n");
        }
        self.received.lock().unwrap().contents.push(content);
        self.act(wire, "CONTENT").await
    }

    async fn act(&self, wire: &mut Wire, point: &str) -> io::Result<()> {
        self.points.send(point.to_owned()).ok();
        let action = self.script.lock().unwrap().next(point);
        let reply = match action {
            Some(Action::Reply(reply)) => reply.to_owned(),
            Some(Action::Close) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Action::Silence) => std::future::pending().await,
            None => self.script.lock().unwrap().default_reply(point),
        };
        wire.write_all(format!("{reply}\r\n").as_bytes()).await
    }
}

async fn line(wire: &mut Wire) -> io::Result<String> {
    let mut line = String::new();
    if wire.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches("\r\n").to_owned())
}
