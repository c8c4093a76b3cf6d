//! A mail server on the loopback (RFC 5321), as far as a mail's way to it goes, with its answers in the hand of a test.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use testkit::ServerOptions;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::serving::on_own_loopback;

const PORT: u16 = 2525;

/// A point of the dialogue at which something may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The connection was made.
    Greeting,
    /// `EHLO`.
    Hello,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The content has begun to come.
    Begun,
    /// The content has come to its end.
    Content,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// This is answered instead of a yes.
    Says(&'static str),
    /// The connection ends.
    HangsUp,
}

#[derive(Debug, Default)]
struct State {
    /// Where, for which recipients (those whose line has this text in it), and what.
    trouble: Vec<(Point, &'static str, Trouble)>,
    /// Contents that came whole.
    heard: Vec<String>,
    /// Those of them that were answered with a yes.
    taken: Vec<String>,
}

/// The server. It ends with the runtime of its test.
#[derive(Debug)]
pub struct MailServer {
    /// Where it listens; nobody else does while it is away.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    listening: JoinHandle<()>,
}

impl MailServer {
    /// Starts one that takes every mail, one on each connection.
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

    /// Settings under which mails go to it.
    pub fn given_to(&self, options: ServerOptions) -> ServerOptions {
        options
            .set("SELLER_API__MAIL__HOST", self.address.ip())
            .set("SELLER_API__MAIL__PORT", self.address.port())
            .set("SELLER_API__MAIL__SECURITY", "plain")
            .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
            .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// From now on this goes wrong.
    pub fn fails(&self, point: Point, trouble: Trouble) {
        self.fails_for("", point, trouble);
    }

    /// From now on this goes wrong with mails to a recipient: at [`Point::Recipient`].
    pub fn refuses(&self, recipient: &'static str, words: &'static str) {
        self.fails_for(recipient, Point::Recipient, Trouble::Says(words));
    }

    fn fails_for(&self, recipient: &'static str, point: Point, trouble: Trouble) {
        self.state().trouble.push((point, recipient, trouble));
    }

    /// Nothing goes wrong any more.
    pub fn is_well(&self) {
        self.state().trouble.clear();
    }

    /// From now on connections are refused.
    pub async fn goes_away(&mut self) {
        self.listening.abort();
        // Its end is what was asked for.
        drop((&mut self.listening).await);
    }

    /// Listens again.
    pub async fn comes_back(&mut self) {
        let listener = TcpListener::bind(self.address)
            .await
            .expect("the address is free");
        self.listening = listen(listener, Arc::clone(&self.state));
    }

    /// The contents of the mails that it took charge of and that have this in them.
    pub fn taken(&self, text: &str) -> Vec<String> {
        with(&self.state().taken, text)
    }

    /// The contents that it heard to their end and that have this in them, whatever it said to them.
    pub fn heard(&self, text: &str) -> Vec<String> {
        with(&self.state().heard, text)
    }
}

fn with(contents: &[String], text: &str) -> Vec<String> {
    let found = contents.iter().filter(|content| content.contains(text));
    found.cloned().collect()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("the state is whole")
}

fn listen(listener: TcpListener, state: Arc<Mutex<State>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let guest = Guest {
                wire: BufReader::new(stream),
                state: Arc::clone(&state),
            };
            // How a dialogue ends is seen in what was taken.
            tokio::spawn(async move { guest.receive().await });
        }
    })
}

struct Guest {
    wire: BufReader<TcpStream>,
    state: Arc<Mutex<State>>,
}

impl Guest {
    /// One dialogue, up to its end or to the mail that was taken.
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
            // Before the answer, so that whoever has it finds the mail.
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

    /// Tells whether it was the usual answer; nothing where the connection ends.
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
