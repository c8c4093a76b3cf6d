//! Deliveries over TLS, and untrusted certificates.

use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{ServerConfig, crypto::ring::default_provider, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};
use tokio_rustls::TlsAcceptor;
use webhooks::{Failure, Outcome};

use super::{
    receiver::{OK, Receiver, serve},
    support::{LONG, SHORT, delivers, failed, outcome, send, sender, sender_with},
};
use crate::HttpSender;

/// A receiver's certificate and key.
struct Identity {
    pem: String,
    config: ServerConfig,
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
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Self {
            pem: certificate.pem(),
            config: config
                .with_single_cert(vec![certificate.der().clone()], secret)
                .unwrap(),
        }
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.config.clone()))
    }

    async fn receiver(&self) -> Receiver {
        let acceptor = self.acceptor();
        Receiver::start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, OK).await;
                }
            }
        })
        .await
    }

    fn trusting(&self) -> HttpSender {
        sender_with(|settings| settings.extra_roots = Some(self.pem.clone()))
    }
}

fn secure(receiver: &Receiver) -> String {
    format!("https://{}/hook", receiver.address)
}

fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed(Failure::Tls(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_literal_address_has_a_certificate_too_and_its_connection_is_kept() {
    let identity = Identity::valid_for("127.0.0.1");
    let receiver = identity.receiver().await;
    let sender = identity.trusting();
    delivers(&sender, &secure(&receiver), 3).await;
    assert_eq!(receiver.taken(), 1);
}

#[tokio::test]
async fn the_host_of_the_url_is_sent_as_sni_and_verified() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let identity = Identity::valid_for("localhost");
    let (acceptor, hearing) = (identity.acceptor(), Arc::clone(&heard));
    let receiver = Receiver::start(move |stream, _| {
        let (acceptor, hearing) = (acceptor.clone(), Arc::clone(&hearing));
        async move {
            let stream = acceptor.accept(stream).await.unwrap();
            let tls = stream.get_ref().1;
            let name = tls.server_name().map(str::to_owned);
            hearing
                .lock()
                .unwrap()
                .push((name, tls.alpn_protocol().map(<[u8]>::to_vec)));
            serve(stream, OK).await;
        }
    })
    .await;
    let hook = format!("https://localhost:{}/", receiver.address.port());
    delivers(&identity.trusting(), &hook, 1).await;
    assert_eq!(*heard.lock().unwrap(), [(Some("localhost".to_owned()), None)]);
}

#[tokio::test]
async fn http_2_is_not_offered() {
    let mut identity = Identity::valid_for("127.0.0.1");
    identity.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let receiver = identity.receiver().await;
    delivers(&identity.trusting(), &secure(&receiver), 1).await;
    identity.config.alpn_protocols = vec![b"h2".to_vec()];
    let receiver = identity.receiver().await;
    let outcome = outcome(&identity.trusting(), &secure(&receiver)).await;
    assert_eq!(
        reason(&outcome),
        "the receiver ended the handshake: NoApplicationProtocol"
    );
}

#[tokio::test]
async fn certificates_of_other_hosts_issuers_and_times_are_refused() {
    let other = Identity::valid_for("other.example");
    let expired = Identity::with("127.0.0.1", |params| params.not_after = date_time_ymd(2020, 1, 1));
    let early = Identity::with("127.0.0.1", |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    });
    let stranger = Identity::valid_for("127.0.0.1");
    for (identity, sender, expected) in [
        (
            &other,
            other.trusting(),
            "the certificate is not valid for the host's name",
        ),
        (&expired, expired.trusting(), "the certificate has expired"),
        (&early, early.trusting(), "the certificate is not valid yet"),
        (
            &stranger,
            sender(),
            "the certificate's issuer is not trusted, or an intermediate certificate is missing",
        ),
    ] {
        let receiver = identity.receiver().await;
        let outcome = outcome(&sender, &secure(&receiver)).await;
        assert_eq!(reason(&outcome), expected);
    }
}

#[tokio::test]
async fn plain_http_on_a_port_for_tls_and_the_reverse() {
    let plain = Receiver::start(|mut stream, _| async move {
        let mut hello = [0; 16];
        let _ = stream.read_exact(&mut hello).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let outcome_of_plain = outcome(&sender(), &secure(&plain)).await;
    assert_eq!(
        reason(&outcome_of_plain),
        "the receiver does not speak TLS on this port"
    );
    let identity = Identity::valid_for("127.0.0.1");
    let secure = identity.receiver().await;
    let outcome_of_secure = outcome(&identity.trusting(), &secure.url()).await;
    assert!(matches!(
        outcome_of_secure,
        Outcome::Failed(Failure::Protocol(_) | Failure::Closed)
    ));
}

/// Forwards single bytes with a pause before each.
async fn drip(mut from: TcpStream, to: u16) -> io::Result<()> {
    let mut to = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await?;
    let (mut said, mut answered) = from.split();
    let (mut answers, mut questions) = to.split();
    let there = tokio::io::copy(&mut said, &mut questions);
    let back = async {
        while let Ok(answer) = answers.read_u8().await {
            sleep(Duration::from_millis(20)).await;
            answered.write_u8(answer).await?;
        }
        Ok(())
    };
    tokio::try_join!(there, back).map(drop)
}

#[tokio::test]
async fn a_handshake_that_drips_or_never_comes_ends_with_the_attempt() {
    let identity = Identity::valid_for("127.0.0.1");
    let receiver = identity.receiver().await;
    let port = receiver.address.port();
    let dripping = Receiver::start(move |stream, _| async move {
        let _ = drip(stream, port).await;
    })
    .await;
    let silent = Receiver::start(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let sender = sender_with(|settings| {
        settings.attempt_timeout = SHORT;
        settings.extra_roots = Some(identity.pem.clone());
    });
    for receiver in [&dripping, &silent] {
        let attempted = send(&sender, &secure(receiver)).await;
        assert_eq!(attempted.outcome, failed(Failure::TimedOut));
        assert!(attempted.duration >= SHORT && attempted.duration < LONG);
    }
}
