//! An integrator's site: another origin, over HTTPS with a self-signed certificate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const PAGE: &str = "<!doctype html><title>Back at the application</title><p id=arrived>arrived</p>";

#[derive(Debug)]
pub(crate) struct OtherOrigin {
    /// The address on which it listens.
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl OtherOrigin {
    /// Starts the site for `app.example`.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::default());
        tokio::spawn(accept(listener, acceptor(), Arc::clone(&heads)));
        Self { address, heads }
    }

    /// The heads of the requests to its callback.
    pub(crate) fn callbacks(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        let of_callback = heads.iter().filter(|head| head.starts_with("GET /callback?"));
        of_callback.cloned().collect()
    }
}

fn acceptor() -> TlsAcceptor {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["app.example".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, heads: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        // Browsers open connections that they do not use.
        tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&heads)));
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    heads: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(acceptor.accept(stream).await?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    heads.lock().unwrap().push(head);
    let length = PAGE.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{PAGE}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
