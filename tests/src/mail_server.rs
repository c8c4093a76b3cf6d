//! A mail server on a loopback address (RFC 5321), with answers that a test sets.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use testkit::ServerOptions;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::serving::{lock, on_own_loopback};

const PORT: u16 = 2525;

/// A point of the dialogue at which a test can inject trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The connection was accepted.
    Greeting,
    /// `EHLO`.
    Hello,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The content has started.
    Begun,
    /// The content has ended.
    Content,
}

#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// The server sends this instead of a positive reply.
    Says(&'static str),
    /// The server closes the connection.
    HangsUp,
}

#[derive(Debug, Default)]
struct State {
    /// The point, a text that selects the recipients' lines, and the trouble.
    trouble: Vec<(Point, &'static str, Trouble)>,
    /// Contents that arrived completely.
    heard: Vec<String>,
    /// Contents that got a positive reply.
    taken: Vec<String>,
}

/// A running server. It stops with the runtime of its test.
#[derive(Debug)]
pub struct MailServer {
    /// Its address, which stays reserved while the server is away.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    listening: JoinHandle<()>,
}

impl MailServer {
    /// Starts a server that accepts every mail, one per connection.
    pub async fn start() -> Self {
        let listener = on_own_loopback(async |address| TcpListener::bind((address, PORT)).await).await;
        let listener = match listener {
            Ok(Some(listener)) => listener,
            Ok(None) => panic!("no mail server: somebody has port {PORT} at every address"),
            Err(error) => panic!("no mail server: {error}"),
        };
        let address = listener.local_addr().expect("an address");
        let state = Arc::default();
        Self {
            address,
            listening: listen(listener, Arc::clone(&state)),
            state,
        }
    }

    /// Settings that send mails to this server.
    pub fn given_to(&self, options: ServerOptions) -> ServerOptions {
        options
            .set("SELLER_API__MAIL__HOST", self.address.ip())
            .set("SELLER_API__MAIL__PORT", self.address.port())
            .set("SELLER_API__MAIL__SECURITY", "plain")
            .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
            .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
    }

    /// Injects trouble from now on.
    pub fn fails(&self, point: Point, trouble: Trouble) {
        self.fails_for("", point, trouble);
    }

    /// From now on refuses a recipient, at [`Point::Recipient`].
    pub fn refuses(&self, recipient: &'static str, words: &'static str) {
        self.fails_for(recipient, Point::Recipient, Trouble::Says(words));
    }

    fn fails_for(&self, recipient: &'static str, point: Point, trouble: Trouble) {
        lock(&self.state).trouble.push((point, recipient, trouble));
    }

    /// Ends all trouble.
    pub fn is_well(&self) {
        lock(&self.state).trouble.clear();
    }

    /// From now on connections are refused.
    pub async fn goes_away(&mut self) {
        self.listening.abort();
        // The task was aborted, so it returns an error.
        drop((&mut self.listening).await);
    }

    pub async fn comes_back(&mut self) {
        let listener = TcpListener::bind(self.address)
            .await
            .expect("the address is free");
        self.listening = listen(listener, Arc::clone(&self.state));
    }

    /// The contents of accepted mails that contain `text`.
    pub fn taken(&self, text: &str) -> Vec<String> {
        with(&lock(&self.state).taken, text)
    }

    /// The complete contents that contain `text`, whatever the server replied.
    pub fn heard(&self, text: &str) -> Vec<String> {
        with(&lock(&self.state).heard, text)
    }
}

fn with(contents: &[String], text: &str) -> Vec<String> {
    let found = contents.iter().filter(|content| content.contains(text));
    found.cloned().collect()
}

fn listen(listener: TcpListener, state: Arc<Mutex<State>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let guest = Guest {
                wire: BufReader::new(stream),
                state: Arc::clone(&state),
            };
            // A test sees the result of a dialogue in `taken`.
            tokio::spawn(async move { guest.receive().await });
        }
    })
}

struct Guest {
    wire: BufReader<TcpStream>,
    state: Arc<Mutex<State>>,
}

impl Guest {
    /// One dialogue, until it ends or a mail is accepted.
    async fn receive(mut self) -> Option<()> {
        self.answer(Point::Greeting, "", "220 mail.example ESMTP").await?;
        loop {
            let line = self.line().await?;
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_uppercase();
            match verb.as_str() {
                "EHLO" => self.answer(Point::Hello, &line, "250 mail.example").await?,
                "MAIL" => self.answer(Point::Sender, &line, "250 2.1.0 fine").await?,
                "RCPT" => self.answer(Point::Recipient, &line, "250 2.1.5 fine").await?,
                "DATA" => {
                    if self.answer(Point::Data, &line, "354 go on").await? {
                        return self.content().await;
                    }
                    true
                }
                "QUIT" => return self.say("221 2.0.0 bye").await,
                _ => self.say("250 2.0.0 fine").await.map(|()| true)?,
            };
        }
    }

    async fn content(&mut self) -> Option<()> {
        let mut content = String::new();
        loop {
            let line = self.line().await?;
            if content.is_empty() && matches!(self.trouble(Point::Begun, ""), Some(Trouble::HangsUp)) {
                return None;
            }
            if line == "." {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
            content.push('\n');
        }
        lock(&self.state).heard.push(content.clone());
        if self.trouble(Point::Content, "").is_none() {
            // Stored before the answer, so that the client's next step can rely on it.
            lock(&self.state).taken.push(content);
        }
        self.answer(Point::Content, "", "250 2.0.0 taken").await.map(drop)
    }

    fn trouble(&self, point: Point, line: &str) -> Option<Trouble> {
        let state = lock(&self.state);
        let mut all = state.trouble.iter();
        all.find(|(at, recipient, _)| *at == point && line.contains(recipient))
            .map(|(_, _, trouble)| *trouble)
    }

    /// Sends the answer and returns whether it was the usual one; `None` if the connection ends.
    async fn answer(&mut self, point: Point, line: &str, usual: &str) -> Option<bool> {
        match self.trouble(point, line) {
            None => self.say(usual).await.map(|()| true),
            Some(Trouble::Says(words)) => self.say(words).await.map(|()| false),
            Some(Trouble::HangsUp) => None,
        }
    }

    async fn say(&mut self, words: &str) -> Option<()> {
        let line = format!("{words}\r\n");
        self.wire.get_mut().write_all(line.as_bytes()).await.ok()
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.wire.read_line(&mut line).await.ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }
}
