//! TLS of the listeners: handshakes, replaced certificates, and clients that do not complete a handshake.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackbox::{Wire, World, request, until};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::Signal;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use testkit::{ServerOptions, TestDatabase, TestServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{PROGRAM, metrics, run_alone, set};

/// A folder with a certificate and its key.
struct Files(TempDir);

impl Files {
    fn new() -> (Self, CertificateDer<'static>) {
        let files = Self(TempDir::new().unwrap());
        let certificate = files.renew();
        (files, certificate)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Replaces the certificate and its key by new ones.
    fn renew(&self) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["api.example".to_owned()]).unwrap();
        fs::write(self.path("key.pem"), signing_key.serialize_pem()).unwrap();
        fs::write(self.path("certificate.pem"), cert.pem()).unwrap();
        cert.der().clone()
    }

    fn given_to(&self, options: ServerOptions, section: &str) -> ServerOptions {
        let variable = |name: &str| format!("SELLER_API__SERVER__{section}__{name}");
        options
            .set(&variable("CERTIFICATE"), self.path("certificate.pem"))
            .set(&variable("KEY"), self.path("key.pem"))
    }
}

fn connector(
    trusted: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn tcp(base_url: &str) -> TcpStream {
    let address = base_url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

async fn shake_hands(base_url: &str, connector: TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("api.example").unwrap();
    connector.connect(name, tcp(base_url).await).await
}

async fn connected(base_url: &str, trusted: &CertificateDer<'static>) -> TlsStream<TcpStream> {
    let connector = connector(trusted, &[&TLS13, &TLS12], &["h2", "http/1.1"]);
    shake_hands(base_url, connector).await.expect("a handshake")
}

/// Requests a path and returns the status. A HEAD's answer has no body.
async fn status(stream: &mut TlsStream<TcpStream>, path: &str) -> u16 {
    let request = request("HEAD", path, &[("user-agent", "Tests/1.0")]);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "{answer:?}");
    }
    let head = String::from_utf8(answer).unwrap();
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Waits until the server closes a connection on which nothing more is sent.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest));
    // A reset counts as closed.
    drop(end.await.expect("the connection ends"));
}

/// A world with TLS on its public listener, its files and its certificate.
async fn secured(settings: &[(&str, &str)]) -> (World, Files, CertificateDer<'static>) {
    let (files, certificate) = Files::new();
    let options = |options| set(files.given_to(options, "TLS"), settings);
    (World::with(PROGRAM, options).await, files, certificate)
}

#[tokio::test]
async fn clients_of_both_versions_are_served_and_agree_on_http_1_1() {
    let (world, _files, certificate) = secured(&[]).await;
    let base = &world.server.base_url;
    for version in [&TLS12, &TLS13] {
        let connector = connector(&certificate, &[version], &["h2", "http/1.1"]);
        let mut stream = shake_hands(base, connector).await.unwrap();
        let (_, session) = stream.get_ref();
        assert_eq!(session.alpn_protocol(), Some(b"http/1.1".as_slice()));
        assert_eq!(session.protocol_version(), Some(version.version));
        for _ in 0..3 {
            assert_eq!(status(&mut stream, "/v1/me").await, 401);
            assert_eq!(status(&mut stream, "/openapi.json/none").await, 404);
        }
    }
    // Without ALPN the protocol is HTTP/1.1 too. With only an unknown protocol the handshake fails.
    let without = connector(&certificate, &[&TLS13], &[]);
    let mut without = shake_hands(base, without).await.unwrap();
    assert_eq!(status(&mut without, "/v1/me").await, 401);
    let http2 = connector(&certificate, &[&TLS13], &["h2"]);
    shake_hands(base, http2).await.unwrap_err();
    // URLs in the service's own documents use https.
    let metadata = "/.well-known/oauth-authorization-server";
    let mut stream = connected(base, &certificate).await;
    let request = request("GET", metadata, &[("connection", "close")]);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let end = stream.read_to_string(&mut answer).await;
    end.expect("the connection ends with close_notify");
    let issuer = format!("\"issuer\":\"{}\"", base.replace("http://", "https://"));
    assert!(answer.contains(&issuer), "{answer}");
}

#[tokio::test]
async fn a_certificate_is_replaced_while_connections_are_open() {
    let (world, files, first) = secured(&[]).await;
    let base = &world.server.base_url;
    let mut open = connected(base, &first).await;
    assert_eq!(status(&mut open, "/v1/me").await, 401);
    let presented = |stream: &TlsStream<TcpStream>| {
        stream.get_ref().1.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    };
    assert_eq!(presented(&open), first);

    let second = files.renew();
    world.server.signal(Signal::HUP);
    let is_reloaded = |log: &str| log.contains("the certificate was reloaded");
    world.server.log_with(is_reloaded).await;
    assert_eq!(presented(&connected(base, &second).await), second);
    let trusts_the_first = connector(&first, &[&TLS13], &[]);
    shake_hands(base, trusts_the_first).await.unwrap_err();
    assert_eq!(
        status(&mut open, "/v1/me").await,
        401,
        "the open connection continues"
    );

    // The key of a different certificate.
    let key = fs::read(files.path("key.pem")).unwrap();
    files.renew();
    fs::write(files.path("key.pem"), key).unwrap();
    world.server.signal(Signal::HUP);
    let is_refused = |log: &str| log.contains("is not that of the first certificate");
    let log = world.server.log_with(is_refused).await;
    assert!(log.contains("the previous one stays in use"), "{log}");
    let metrics = metrics(&world).await;
    let no_failure = "tls_reload_failures_total{listener=\"api\"} 0\n";
    let expiry = "tls_certificate_expiry_time_seconds{listener=\"api\"} ";
    assert!(
        !metrics.contains(no_failure) && metrics.contains(expiry),
        "{metrics}"
    );
    let mut later = connected(base, &second).await;
    assert_eq!(status(&mut later, "/v1/me").await, 401);
    assert_eq!(status(&mut open, "/v1/me").await, 401);
}

#[tokio::test]
async fn a_connection_without_a_handshake_is_closed() {
    let (world, _files, certificate) = secured(&[("SERVER__HEADER_TIMEOUT", "1s")]).await;
    let base = &world.server.base_url;
    let mut plain = Wire::connect(base).await;
    plain.send(request("GET", "/v1/me", &[])).await;
    // A TLS alert is not an HTTP answer.
    let mut garbage = tcp(base).await;
    garbage.write_all(&[0x47; 2_000]).await.unwrap();
    let mut silent = tcp(base).await;
    let mut slow = tcp(base).await;
    // The start of a record with a handshake of 512 bytes.
    let record = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];
    slow.write_all(&record).await.unwrap();
    closed(&mut garbage).await;
    let refused = "tls_plaintext_connections_total{listener=\"api\"} 2\n";
    until("both are counted", async || {
        metrics(&world).await.contains(refused)
    })
    .await;
    let told = |log: &str| log.matches("speaks plain HTTP").count();
    let log = world.server.log_with(|log| told(log) > 0).await;
    assert_eq!(told(&log), 1, "{log}");
    for stream in [&mut silent, &mut slow] {
        closed(stream).await;
    }
    // A missing request head has a separate timeout.
    let mut idle = connected(base, &certificate).await;
    let mut answer = String::new();
    let end = tokio::time::timeout(Duration::from_secs(30), idle.read_to_string(&mut answer));
    end.await
        .expect("the connection ends")
        .expect("with close_notify");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_handshake_takes_a_connections_place() {
    let (world, _files, certificate) = secured(&[
        ("SERVER__HEADER_TIMEOUT", "2s"),
        ("SERVER__THREADS", "1"),
        ("SERVER__MAX_CONNECTIONS", "2"),
    ])
    .await;
    let base = &world.server.base_url;
    let began = Instant::now();
    let _silent = [tcp(base).await, tcp(base).await];
    let mut third = connected(base, &certificate).await;
    assert_eq!(status(&mut third, "/v1/me").await, 401);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1_500), "{took:?}");
}

#[tokio::test]
async fn the_back_office_serves_tls_too() {
    let (files, certificate) = Files::new();
    let database = TestDatabase::create().await;
    let options = files.given_to(ServerOptions::new(PROGRAM), "BACKOFFICE_TLS");
    let server = TestServer::listen(&options, database.url()).await;
    let mut stream = connected(&server.backoffice_url, &certificate).await;
    assert_eq!(status(&mut stream, "/healthz").await, 200);
    let plain = request("GET", "/v1/me", &[("user-agent", "Tests/1.0")]);
    Wire::exchange(&server.base_url, plain).await.expect(401);
}

#[tokio::test]
async fn unusable_files_stop_the_start_with_the_reason() {
    let ((files, _), (others, _)) = (Files::new(), Files::new());
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    let (missing, foreign) = (files.path("missing.pem"), others.path("key.pem"));
    let (no_certificate, no_key) = ("there is no whole certificate", "there is no whole private key");
    let unset = "`server.tls.key` must be set where server.tls.certificate is";
    for (certificate, key, reason) in [
        (&certificate, None, unset),
        (&missing, Some(&key), "`server.tls.certificate` names"),
        (&certificate, Some(&missing), "`server.tls.key` names"),
        (&key, Some(&key), no_certificate),
        (&certificate, Some(&certificate), no_key),
        (
            &certificate,
            Some(&foreign),
            "is not that of the first certificate",
        ),
    ] {
        let mut environment = vec![("SELLER_API__SERVER__TLS__CERTIFICATE", certificate.as_str())];
        environment.extend(key.map(|key| ("SELLER_API__SERVER__TLS__KEY", key.as_str())));
        // `config` finds everything that makes `serve` fail.
        for command in ["serve", "config"] {
            let refused = run_alone(command, &environment).await.ended(1);
            assert!(refused.stderr.contains(reason), "{reason}: {}", refused.output());
            let shows_key = refused.output().contains("PRIVATE KEY-----\nM");
            assert!(!shows_key, "a key is printed");
        }
    }
}
