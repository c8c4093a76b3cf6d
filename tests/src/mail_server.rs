//! Sent mails: a mail server on a loopback address (RFC 5321), with answers that a test sets; and a folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use testkit::{ServerOptions, SmtpAction, SmtpScript, SmtpServer};
use tokio::net::TcpListener;

use crate::serving::on_own_loopback;

const PORT: u16 = 2525;

/// A running server that accepts one mail per connection. It stops with the runtime of its test.
#[derive(Debug)]
pub struct MailServer {
    pub address: SocketAddr,
    server: SmtpServer,
}

impl MailServer {
    pub async fn start() -> Self {
        let listener = on_own_loopback(async |address| TcpListener::bind((address, PORT)).await).await;
        let listener = match listener {
            Ok(Some(listener)) => listener,
            Ok(None) => panic!("no mail server: somebody has port {PORT} at every address"),
            Err(error) => panic!("no mail server: {error}"),
        };
        let server = SmtpServer::over(listener, SmtpScript::default().one_mail_per_connection());
        Self {
            address: server.address,
            server,
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

    /// Acts like this from now on, at a point of [`SmtpScript`].
    pub fn fails(&self, point: &'static str, action: SmtpAction) {
        self.server.script().add(point, "", action);
    }

    /// From now on refuses a recipient.
    pub fn refuses(&self, recipient: &'static str, words: &'static str) {
        let reply = SmtpAction::Reply(words);
        self.server.script().add("RCPT", recipient, reply);
    }

    /// Ends all trouble.
    pub fn is_well(&self) {
        self.server.script().clear();
    }

    /// The contents of accepted mails that contain `text`.
    pub fn taken(&self, text: &str) -> Vec<String> {
        with(self.server.accepted(), text)
    }

    /// The complete contents that contain `text`, whatever the server replied.
    pub fn heard(&self, text: &str) -> Vec<String> {
        with(self.server.contents(), text)
    }
}

/// Settings that write mails into a folder.
pub fn mails_to(options: ServerOptions, folder: &Path) -> ServerOptions {
    options
        .set("SELLER_API__MAIL__FOLDER", folder.display())
        .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
        .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
}

/// The paths of the account links in the mails of a folder, oldest mail first.
pub fn mailed_links(folder: &Path) -> Vec<String> {
    let link = |path| {
        let source = std::fs::read_to_string(path).unwrap();
        // Quoted-printable breaks long lines with `=`.
        let text = source.replace("=\r\n", "");
        let (_, rest) = text.split_once("/panel/").unwrap();
        format!("/panel/{}", rest.split(char::is_whitespace).next().unwrap())
    };
    mail_files(folder).into_iter().map(link).collect()
}

/// The files of the mails in a folder, oldest first.
pub fn mail_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten();
    let mut mails: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    mails.retain(|path| path.extension().is_some_and(|extension| extension == "eml"));
    mails.sort();
    mails
}

fn with(mut contents: Vec<String>, text: &str) -> Vec<String> {
    contents.retain(|content| content.contains(text));
    contents
}
