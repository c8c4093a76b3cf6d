//! An integrator's site: another origin, over HTTPS with a self-signed certificate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
use testkit::{HttpServer, Received, read_request, response};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

const PAGE: &[u8] = b"<!doctype html><title>Back at the application</title><p id=arrived>arrived</p>";

#[derive(Debug)]
pub(crate) struct OtherOrigin {
    /// The address on which it listens.
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl OtherOrigin {
    /// Starts the site for `app.example`.
    pub(crate) async fn start() -> Self {
        let (acceptor, received) = (acceptor(), Arc::<Mutex<_>>::default());
        let all = Arc::clone(&received);
        let serve = move |stream| serve(stream, acceptor.clone(), Arc::clone(&all));
        let address = HttpServer::start_raw(serve).await.address;
        Self { address, received }
    }

    /// The requests to its callback.
    pub(crate) fn callbacks(&self) -> Vec<Received> {
        let received = self.received.lock().unwrap();
        let of_callback = received
            .iter()
            .filter(|request| request.target().starts_with("/callback?"));
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

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, received: Arc<Mutex<Vec<Received>>>) {
    // Browsers open connections that they do not use.
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    if let Some(request) = read_request(&mut stream, &mut Vec::new()).await {
        received.lock().unwrap().push(request);
        let headers = [("content-type", "text/html"), ("connection", "close")];
        drop(stream.write_all(&response(200, headers, PAGE)).await);
        drop(stream.shutdown().await);
    }
}
