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
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// The server's action at a point of the dialogue.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends this line.
    Say(&'static str),
    /// Closes the connection.
    Close,
    /// Sends nothing more and keeps the connection open.
    Hush,
}

/// The server's behaviour. Points are verbs, and: `CONNECT` (the greeting), `BODY` (after the content's first line), `CONTENT`
/// (after its end).
#[derive(Clone, Default)]
pub(crate) struct Script {
    acts: HashMap<&'static str, Vec<Act>>,
    extensions: Vec<&'static str>,
    tls: Option<TlsAcceptor>,
    tls_first: bool,
}

impl Script {
    /// Sets the action at `point`, for every time.
    pub(crate) fn at(mut self, point: &'static str, act: Act) -> Self {
        self.acts.insert(point, vec![act]);
        self
    }

    /// Sets the first action at `point`; afterwards the default applies.
    pub(crate) fn once(mut self, point: &'static str, act: Act) -> Self {
        self.acts.insert(point, vec![act, Act::Say(usual(point))]);
        self
    }

    /// Adds an extension to the answer to `EHLO`.
    pub(crate) fn offers(mut self, extension: &'static str) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Sets the TLS acceptor for `STARTTLS`.
    pub(crate) fn tls(mut self, acceptor: TlsAcceptor) -> Self {
        self.tls = Some(acceptor);
        self
    }

    /// Sets the TLS acceptor for TLS from the first byte.
    pub(crate) fn tls_first(mut self, acceptor: TlsAcceptor) -> Self {
        self.tls_first = true;
        self.tls(acceptor)
    }

    /// Takes the next action at `point`; `None` for the default answer to `EHLO` with the extensions.
    fn next(&mut self, point: &str) -> Option<Act> {
        match self.acts.get_mut(point) {
            Some(acts) if acts.len() > 1 => Some(acts.remove(0)),
            Some(acts) => acts.first().cloned(),
            None if point == "EHLO" => None,
            None => Some(Act::Say(usual(point))),
        }
    }

    fn greeting(&self) -> String {
        let extensions = self
            .extensions
            .iter()
            .map(|extension| format!("250-{extension}\r\n"));
        format!(
            "250-stub.example.com\r\n{}250 HELP\r\n",
            extensions.collect::<String>()
        )
    }
}

fn usual(point: &str) -> &'static str {
    match point {
        "CONNECT" => "220 stub.example.com ESMTP",
        "STARTTLS" => "220 go ahead",
        "AUTH" => "235 2.7.0 welcome",
        "DATA" => "354 go on",
        "QUIT" => "221 bye",
        _ => "250 2.0.0 fine",
    }
}

/// Commands and contents that the server has received.
#[derive(Default)]
struct Heard {
    commands: Vec<String>,
    contents: Vec<String>,
    connections: usize,
}

/// A running server. Dropping it stops it.
pub(crate) struct Stub {
    port: u16,
    heard: Arc<Mutex<Heard>>,
    points: mpsc::UnboundedReceiver<String>,
    server: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Stub {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (tell, points) = mpsc::unbounded_channel();
        let shared = Arc::new(Mutex::new(script));
        let ears = Arc::clone(&heard);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                ears.lock().unwrap().connections += 1;
                let guest = Guest {
                    script: Arc::clone(&shared),
                    heard: Arc::clone(&ears),
                    tell: tell.clone(),
                };
                // Tests see the result of a dialogue in what was received.
                tokio::spawn(async move { guest.receive(Box::new(stream)).await.ok() });
            }
        });
        Self {
            port,
            heard,
            points,
            server,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// All commands, in the order of arrival.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.heard.lock().unwrap().commands.clone()
    }

    /// The contents that arrived completely, with dots unstuffed.
    pub(crate) fn contents(&self) -> Vec<String> {
        self.heard.lock().unwrap().contents.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.heard.lock().unwrap().connections
    }

    /// Waits until a dialogue reaches `point`.
    pub(crate) async fn reaches(&mut self, point: &str) {
        while self.points.recv().await.expect("the server runs") != point {}
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}
type Wire = BufReader<Box<dyn Duplex>>;

/// One connection.
struct Guest {
    script: Arc<Mutex<Script>>,
    heard: Arc<Mutex<Heard>>,
    tell: mpsc::UnboundedSender<String>,
}

impl Guest {
    async fn receive(self, mut stream: Box<dyn Duplex>) -> io::Result<()> {
        let (tls, tls_first) = {
            let script = self.script.lock().unwrap();
            (script.tls.clone(), script.tls_first)
        };
        if let (Some(tls), true) = (&tls, tls_first) {
            stream = Box::new(tls.accept(stream).await?);
        }
        let mut wire = BufReader::new(stream);
        self.act(&mut wire, "CONNECT").await?;
        loop {
            let line = line(&mut wire).await?;
            self.heard.lock().unwrap().commands.push(line.clone());
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
            if content.is_empty() && self.scripted("BODY") {
                self.act(wire, "BODY").await?;
            }
            if line == "." {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
            content.push_str("\r\n");
        }
        self.heard.lock().unwrap().contents.push(content);
        self.act(wire, "CONTENT").await
    }

    fn scripted(&self, point: &str) -> bool {
        self.script.lock().unwrap().acts.contains_key(point)
    }

    async fn act(&self, wire: &mut Wire, point: &str) -> io::Result<()> {
        self.tell.send(point.to_owned()).ok();
        let act = self.script.lock().unwrap().next(point);
        match act {
            Some(Act::Say(words)) => wire.write_all(format!("{words}\r\n").as_bytes()).await,
            Some(Act::Close) => Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Act::Hush) => std::future::pending().await,
            None => {
                let reply = self.script.lock().unwrap().greeting();
                wire.write_all(reply.as_bytes()).await
            }
        }
    }
}

async fn line(wire: &mut Wire) -> io::Result<String> {
    let mut line = String::new();
    if wire.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches("\r\n").to_owned())
}
