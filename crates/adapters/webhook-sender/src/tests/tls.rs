//! Deliveries over TLS, and untrusted certificates.

use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use testkit::{HttpServer, answer_all};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use webhooks::{AttemptFailure, Outcome};

use super::support::{OK, delivers, outcome, sender, sender_with};
use crate::HttpSender;

/// The server name and the protocol of each handshake.
type Handshakes = Arc<Mutex<Vec<(Option<String>, Option<Vec<u8>>)>>>;

/// A receiver's certificate and key.
struct Identity {
    pem: String,
    config: ServerConfig,
    handshakes: Handshakes,
}

impl Identity {
    fn valid_for(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        Self::presenting(vec![certificate.der().clone()], &key, certificate.pem())
    }

    /// With so many intermediate certificates between it and a root, and behind them the root's own again and again.
    fn behind(intermediates: usize, repeated: usize) -> Self {
        let authority = |level: usize| {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
                .distinguished_name
                .push(DnType::CommonName, level.to_string());
            (params, KeyPair::generate().unwrap())
        };
        let (params, key) = authority(0);
        let root = params.self_signed(&key).unwrap();
        let mut issuer = Issuer::new(params, key);
        let mut chain = Vec::new();
        for level in 1..=intermediates {
            let (params, key) = authority(level);
            chain.insert(0, params.signed_by(&key, &issuer).unwrap().der().clone());
            issuer = Issuer::new(params, key);
        }
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        chain.insert(0, params.signed_by(&key, &issuer).unwrap().der().clone());
        chain.extend(vec![root.der().clone(); repeated]);
        Self::presenting(chain, &key, root.pem())
    }

    fn presenting(chain: Vec<CertificateDer<'static>>, key: &KeyPair, pem: String) -> Self {
        let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, secret);
        Self {
            pem,
            config: config.unwrap(),
            handshakes: Handshakes::default(),
        }
    }

    async fn receiver(&self) -> HttpServer {
        let acceptor = TlsAcceptor::from(Arc::new(self.config.clone()));
        let handshakes = Arc::clone(&self.handshakes);
        HttpServer::start_raw(move |stream| {
            let (acceptor, handshakes) = (acceptor.clone(), Arc::clone(&handshakes));
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let tls = stream.get_ref().1;
                    let name = tls.server_name().map(str::to_owned);
                    let protocol = tls.alpn_protocol().map(<[u8]>::to_vec);
                    handshakes.lock().unwrap().push((name, protocol));
                    answer_all(stream, OK).await;
                }
            }
        })
        .await
    }

    fn trusting(&self) -> HttpSender {
        sender_with(|settings| settings.extra_roots = Some(self.pem.clone()))
    }
}

fn secure(receiver: &HttpServer) -> String {
    format!("https://{}/", receiver.address)
}

/// The failure of a handshake.
async fn failure(sender: &HttpSender, receiver: &HttpServer) -> String {
    match outcome(sender, &secure(receiver)).await {
        Outcome::Failed(AttemptFailure::Tls(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_certificate_is_the_one_of_the_urls_host_and_only_http_1_is_offered() {
    for (host, server_name) in [("127.0.0.1", None), ("localhost", Some("localhost".to_owned()))] {
        let mut identity = Identity::valid_for(host);
        identity.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let receiver = identity.receiver().await;
        let hook = secure(&receiver).replace("127.0.0.1", host);
        delivers(&identity.trusting(), &hook, 3).await;
        let handshake = (server_name, Some(b"http/1.1".to_vec()));
        assert_eq!(*identity.handshakes.lock().unwrap(), [handshake]);
    }
}

#[tokio::test]
async fn failed_handshakes_have_a_reason() {
    let other = Identity::valid_for("other.example");
    let expired = Identity::with("127.0.0.1", |params| params.not_after = date_time_ymd(2020, 1, 1));
    let early = Identity::with("127.0.0.1", |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    });
    let unknown = Identity::valid_for("127.0.0.1");
    let mut http_2 = Identity::valid_for("127.0.0.1");
    http_2.config.alpn_protocols = vec![b"h2".to_vec()];
    for (identity, sender, expected) in [
        (
            &other,
            other.trusting(),
            "the certificate is not valid for the host's name",
        ),
        (&expired, expired.trusting(), "the certificate has expired"),
        (&early, early.trusting(), "the certificate is not valid yet"),
        (
            &unknown,
            sender(),
            "the certificate's issuer is not trusted, or an intermediate certificate is missing",
        ),
        (
            &http_2,
            http_2.trusting(),
            "the receiver ended the handshake: NoApplicationProtocol",
        ),
    ] {
        let receiver = identity.receiver().await;
        assert_eq!(failure(&sender, &receiver).await, expected);
    }
    let plain = HttpServer::start_raw(|mut stream| async move {
        let _ = stream.read_exact(&mut [0; 16]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let reason = failure(&sender(), &plain).await;
    assert_eq!(reason, "the receiver does not speak TLS on this port");
    // The reverse: plain HTTP on a port for TLS.
    let outcome = outcome(&sender(), &unknown.receiver().await.url()).await;
    assert!(matches!(
        outcome,
        Outcome::Failed(AttemptFailure::Protocol(_) | AttemptFailure::Closed)
    ));
}

/// With hundreds that fit each other, no deadline in the thread ran for many seconds.
#[tokio::test]
async fn the_first_three_intermediate_certificates_are_considered() {
    let (three, four) = (Identity::behind(3, 100), Identity::behind(4, 0));
    delivers(&three.trusting(), &secure(&three.receiver().await), 1).await;
    let reason = failure(&four.trusting(), &four.receiver().await).await;
    assert!(reason.contains("intermediate certificate is missing"), "{reason}");
}

#[tokio::test]
async fn tls_without_content_is_cut() {
    for (tickets, is_delivered) in [(400, true), (4000, false)] {
        let mut identity = Identity::valid_for("127.0.0.1");
        identity.config.send_tls13_tickets = tickets;
        let receiver = identity.receiver().await;
        let outcome = outcome(&identity.trusting(), &secure(&receiver)).await;
        // Closed if the limit was reached before the request was sent.
        let is_cut = matches!(
            outcome,
            Outcome::Failed(AttemptFailure::Protocol(_) | AttemptFailure::Closed)
        );
        assert_eq!(
            (outcome.is_success(), is_cut),
            (is_delivered, !is_delivered),
            "{outcome:?}"
        );
    }
}
