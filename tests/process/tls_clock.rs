//! A process's clock is beyond the time of certificates: its own, its database's, a receiver's. It says so, and all is well again
//! once the clock is.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
};

use blackbox::{EVENTS, NameServer, Receiver, World, eventually, listen, local_receivers, own_loopback};
use chrono::TimeDelta;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustix::process::Signal;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tempfile::TempDir;
use testkit::OwnPostgres;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    PROGRAM,
    admin::told,
    clock_steps::{can_step, set_clock, with_clock},
    outage::{connect_every_thread, holds_out},
    starts::reason,
    tls::{connected, status},
};

const RIGHT: &str = "+0s";
/// Thirty years on.
const LATE: &str = "+11000d";
/// More than eight years back.
const EARLY: &str = "-3000d";

/// A certificate from 2020 to 2050 that is its own signer, its key, and the clock of a process.
struct Files {
    folder: TempDir,
    certificate: String,
    key: String,
}

impl Files {
    fn of(name: &str) -> Self {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2050, 1, 1);
        let key = KeyPair::generate().unwrap();
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        fs::write(files.path("certificate.pem"), &files.certificate).unwrap();
        fs::write(files.path("key.pem"), &files.key).unwrap();
        files.clock(RIGHT);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn clock(&self, step: &str) {
        set_clock(&self.path("clock"), step);
    }

    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}

#[tokio::test]
async fn a_certificate_of_its_own_is_served_at_any_time_and_told_of() {
    if !can_step() {
        return;
    }
    let files = Files::of("api.example");
    files.clock(LATE);
    let world = World::with(PROGRAM, |options| {
        with_clock(options, &files.path("clock"))
            .set(
                "SELLER_API__SERVER__TLS__CERTIFICATE",
                files.path("certificate.pem").display(),
            )
            .set("SELLER_API__SERVER__TLS__KEY", files.path("key.pem").display())
    })
    .await;
    let over = "the certificate has expired: clients refuse it";
    let early = "the certificate is not valid yet: clients refuse it";
    for (step, told) in [(LATE, Some(over)), (EARLY, Some(early)), (RIGHT, None)] {
        files.clock(step);
        let reads = |log: &str| log.matches("the certificate was read again").count();
        let (before, warnings) = (reads(&world.server.log()), complaints(&world.server.log()));
        if step != LATE {
            world.server.signal(Signal::HUP);
            world.server.log_with(|log| reads(log) > before).await;
        }
        match told {
            Some(told) => drop(world.server.log_with(|log| log.contains(told)).await),
            None => assert_eq!(complaints(&world.server.log()), warnings),
        }
        // A client with the right time is served whatever the server's.
        let mut stream = connected(&world.server.base_url, &files.der()).await;
        assert_eq!(status(&mut stream, "/v1/me").await, 401, "{step}");
    }
}

fn complaints(log: &str) -> usize {
    log.matches("clients refuse it").count()
}

/// TLS before a receiver; gives the port.
async fn secured(receiver: &Receiver, files: &Files) -> u16 {
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![files.der()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = url::Url::parse(&receiver.url).unwrap();
    let behind = (Ipv4Addr::LOCALHOST, url.port().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await?;
                let mut inside = TcpStream::connect(behind).await?;
                copy_bidirectional(&mut outside, &mut inside).await
            });
        }
    });
    port
}

#[tokio::test]
async fn a_receivers_certificate_out_of_its_time_is_told_and_tried_again() {
    const NAME: &str = "receiver.example";
    if !can_step() {
        return;
    }
    let files = Files::of(NAME);
    let names = NameServer::start(&[(NAME, &[Ipv4Addr::LOCALHOST])]).await;
    let world = World::with(PROGRAM, |options| {
        with_clock(local_receivers(options), &files.path("clock"))
            .set("SELLER_API__WEBHOOKS__NAME_SERVERS", names.address)
            .set(
                "SELLER_API__WEBHOOKS__ROOT_CERTIFICATES",
                files.path("certificate.pem").display(),
            )
    })
    .await;
    let database_clock = world.database.control_clock().await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let port = secured(&receiver, &files).await;
    let url = format!("https://{NAME}:{port}/hooks");
    world.subscribe_to(&own.token, &url, &EVENTS).await.expect(201);
    files.clock(LATE);
    world.any_order(&own.seller).await;
    for (attempt, wrong, next) in [
        (1, "the certificate has expired", EARLY),
        (2, "the certificate is not valid yet", RIGHT),
    ] {
        let delivery = eventually("the end of the attempt", async || {
            let mut pending = told(&world, "webhooks pending").await;
            pending.pop().filter(|delivery| delivery["attempts"] == attempt)
        })
        .await;
        assert_eq!(delivery["error"], format!("TLS failed: {wrong}"));
        assert_eq!(receiver.count(), 0);
        files.clock(next);
        database_clock.advance(TimeDelta::minutes(6)).await;
    }
    receiver.has(1).await;
}

/// Lays a file among a server's data, as their owner's.
fn place(data: &Path, name: &str, content: &str) {
    let (path, owner) = (data.join(name), fs::metadata(data).unwrap());
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test]
async fn a_databases_certificate_out_of_its_time_is_told_and_survived() {
    const NAME: &str = "db.example";
    if !can_step() {
        return;
    }
    let (files, address) = (Files::of(NAME), own_loopback());
    let postgres =
        OwnPostgres::start(|options| options.setting("listen_addresses", address.to_string())).await;
    let data = postgres.cluster().data_folder();
    place(&data, "server.crt", &files.certificate);
    place(&data, "server.key", &files.key);
    place(
        &data,
        "pg_hba.conf",
        "local all all trust\nhostssl all postgres 127.0.0.0/8 trust\n",
    );
    let admin = postgres.database().connect().await;
    for statement in ["alter system set ssl = on", "select pg_reload_conf()"] {
        admin.batch_execute(statement).await.unwrap();
    }
    let mut world = World::over(PROGRAM, postgres.database(), |options| options).await;
    let (seller, token) = world.reader().await;
    let root = files.path("certificate.pem");
    let url = format!(
        "postgres://postgres@{NAME}/postgres?hostaddr={address}&sslmode=verify-full&sslrootcert={}",
        root.display()
    );
    let operator_token = world.server.operator_token.clone();
    let options = with_clock(world.options.clone(), &files.path("clock"));
    world.server = listen(&options, &url).await;
    world.server.operator_token = operator_token;
    world.server.ready().await;
    for (step, wrong) in [
        (LATE, "the server's certificate has expired"),
        (EARLY, "the server's certificate is not valid yet"),
    ] {
        connect_every_thread(&world, &token).await;
        files.clock(step);
        // Connections that are there go on.
        world.get(&token, "/v1/offers").await.expect(200);
        let others = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        admin.query(others, &[]).await.unwrap();
        holds_out(&world, &token, &seller.id).await;
        let reason = reason(&world.server).await;
        assert!(reason.contains(wrong) && reason.contains("clock"), "{reason}");
        files.clock(RIGHT);
        world.server.ready().await;
        world.get(&token, "/v1/offers").await.expect(200);
    }
}
