//! TLS connections, and servers other than the one that the URL names.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use adapter_postgres::{MigrateError, SchemaState, migrate};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use private_postgres::{Cluster, Options};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tempfile::TempDir;
use testkit::own_loopback;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::{Certificate, Version};

use crate::support::servers::{database, refusal, start, tamper};

/// The name in the server's certificate.
const NAME: &str = "db.example";

/// The signer of that certificate.
const AUTHORITY: &str = "tests' authority";

/// The rules of `pg_hba.conf`: over the network only with TLS.
const RULES: &str = "local all all trust\n\
    hostssl all carded 127.0.0.0/8 cert\n\
    hostssl all bound 127.0.0.0/8 scram-sha-256\n\
    hostssl all postgres 127.0.0.0/8 trust\n";

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            key: key.serialize_pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate and its key.
    fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// A server with TLS on its own address.
struct Server {
    cluster: Cluster,
    address: String,
    authority: Authority,
    folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        let params = CertificateParams::new([NAME.to_owned()]).unwrap();
        Self::showing(|authority| authority.sign(&params)).await
    }

    /// A server with this certificate and key.
    async fn showing(own: impl FnOnce(&Authority) -> (String, String)) -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new(AUTHORITY));
        let data_folder = folder.path().join("cluster");
        // A first start creates the data directory, where the server's files go.
        let options = Options::new(&data_folder);
        let make = options.clone();
        let data = tokio::task::spawn_blocking(move || Cluster::start(make).unwrap().data_folder());
        let data = data.await.unwrap();
        let (certificate, key) = own(&authority);
        for (name, content) in [
            ("server.crt", &*certificate),
            ("server.key", &*key),
            ("clients.crt", &*authority.pem),
            ("pg_hba.conf", RULES),
        ] {
            place(&data, name, content);
        }
        let address = own_loopback().to_string();
        let options = options
            .setting("listen_addresses", &address)
            .setting("ssl", "on")
            .setting("ssl_ca_file", "clients.crt");
        Self {
            cluster: start(options).await,
            address,
            authority,
            folder,
        }
    }

    /// A URL that leads to the server, whatever name it contains.
    fn url(&self, user: &str, name: &str, parameters: &str) -> String {
        format!(
            "postgres://{user}@{name}/postgres?hostaddr={}&{parameters}",
            self.address
        )
    }

    /// The path of a file with this content.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn trusting(&self, name: &str, mode: &str) -> String {
        let root = self.file("root.crt", &self.authority.pem);
        self.url("postgres", name, &format!("sslmode={mode}&sslrootcert={root}"))
    }
}

/// Writes a file into the data directory, with the same owner.
fn place(data: &Path, name: &str, content: &str) {
    let (path, owner) = (data.join(name), fs::metadata(data).unwrap());
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
}

async fn can_connect(url: &str) {
    if let Err(error) = database(url).is_empty().await {
        panic!("{url}: {}", crate::support::servers::error_chain(&error));
    }
}

#[tokio::test]
async fn each_sslmode_verifies_the_server_as_it_says() {
    let server = Server::start().await;
    can_connect(&server.trusting(NAME, "verify-full")).await;
    can_connect(&server.trusting("other.example", "verify-ca")).await;
    can_connect(&server.trusting("other.example", "require")).await;
    for mode in ["require", "prefer"] {
        can_connect(&server.url("postgres", "other.example", &format!("sslmode={mode}"))).await;
    }
    let error = refusal(&server.trusting("other.example", "verify-full")).await;
    assert!(
        error.contains("made for another name: connect by that name"),
        "{error}"
    );
    for name in ["a stranger", AUTHORITY] {
        let stranger = server.file("stranger.crt", &Authority::new(name).pem);
        for mode in ["verify-full", "verify-ca", "require"] {
            let parameters = format!("sslmode={mode}&sslrootcert={stranger}");
            let error = refusal(&server.url("postgres", NAME, &parameters)).await;
            assert!(error.contains("in sslrootcert"), "{error}");
        }
    }
    // The server's rules reject connections without TLS.
    let error = refusal(&server.url("postgres", NAME, "sslmode=disable")).await;
    assert!(error.contains("pg_hba.conf"), "{error}");
}

/// A certificate of X.509 version 1 for the key of this one, as Citus makes them. Its signature is not valid
/// any more, and not looked at.
fn of_version_1(pem: &str) -> String {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut certificate = Certificate::from_der(&der).unwrap();
    certificate.tbs_certificate.version = Version::V1;
    certificate.tbs_certificate.extensions = None;
    let text = BASE64_STANDARD.encode(certificate.to_der().unwrap());
    let lines = text
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap());
    let lines = lines.collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn a_certificate_of_version_1_is_taken_where_none_is_verified() {
    let params = CertificateParams::new([NAME.to_owned()]).unwrap();
    let own = |authority: &Authority| {
        let (certificate, key) = authority.sign(&params);
        (of_version_1(&certificate), key)
    };
    let server = Server::showing(own).await;
    for mode in ["require", "prefer"] {
        can_connect(&server.url("postgres", NAME, &format!("sslmode={mode}"))).await;
    }
    let refused = refusal(&server.trusting(NAME, "verify-ca")).await;
    assert!(refused.contains("X.509 version 1"), "{refused}");
}

#[tokio::test]
async fn a_certificate_outside_its_validity_is_refused_with_the_clocks_named() {
    let [mut expired, mut early] = [(); 2].map(|()| CertificateParams::new([NAME.to_owned()]).unwrap());
    expired.not_after = date_time_ymd(2020, 1, 1);
    early.not_before = date_time_ymd(4000, 1, 1);
    for (params, wrong) in [
        (expired, "has expired by this machine's clock"),
        (early, "is not valid yet: compare the clocks"),
    ] {
        let server = Server::showing(|authority| authority.sign(&params)).await;
        let refused = refusal(&server.trusting(NAME, "verify-full")).await;
        assert!(refused.contains(wrong), "{refused}");
    }
}

#[tokio::test]
async fn a_ca_certificate_as_server_certificate_is_refused_with_advice() {
    let server = Server::showing(|authority| (authority.pem.clone(), authority.key.clone())).await;
    for mode in ["verify-full", "verify-ca"] {
        let database = database(&server.trusting(NAME, mode));
        assert_eq!(database.connector().advice(), None, "before the first attempt");
        let error = crate::support::servers::error_chain(&database.is_empty().await.unwrap_err());
        let advice = database.connector().advice().unwrap();
        for part in ["CA:TRUE", "CA:FALSE", "sslrootcert"] {
            assert!(error.contains(part) && advice.contains(part), "{error}");
        }
        assert!(!advice.contains(NAME), "{advice}");
    }
    can_connect(&server.url("postgres", NAME, "sslmode=require")).await;
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_where_sslrootcert_names_it() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([NAME.to_owned()]).unwrap();
    let own = params.self_signed(&key).unwrap().pem();
    let server = Server::showing(|_| (own.clone(), key.serialize_pem())).await;
    let root = server.file("own.crt", &own);
    let url = server.url(
        "postgres",
        NAME,
        &format!("sslmode=verify-full&sslrootcert={root}"),
    );
    can_connect(&url).await;
}

#[tokio::test]
async fn migrations_verify_the_server_too() {
    let server = Server::start().await;
    let refused = migrate(&server.trusting("other.example", "verify-full"), drop).await;
    assert!(
        matches!(refused, Err(MigrateError::Unreachable(_))),
        "{refused:?}"
    );
    let url = server.trusting(NAME, "verify-full");
    migrate(&url, drop).await.unwrap();
    assert_eq!(database(&url).schema_state().await.unwrap(), SchemaState::Ready);
}

#[tokio::test]
async fn a_client_presents_its_certificate() {
    let server = Server::start().await;
    let local = server.cluster.url("postgres");
    tamper(&local, "create role carded login").await;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "carded");
    let (certificate, key) = server.authority.sign(&params);
    let (certificate, key) = (server.file("own.crt", &certificate), server.file("own.key", &key));
    let shown = format!("sslmode=require&sslcert={certificate}&sslkey={key}");
    can_connect(&server.url("carded", NAME, &shown)).await;
    let error = refusal(&server.url("carded", NAME, "sslmode=require")).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn channel_binding_can_be_required() {
    let server = Server::start().await;
    let local = server.cluster.url("postgres");
    tamper(&local, "create role bound login password 'secret'").await;
    let parameters = "sslmode=require&channel_binding=require";
    can_connect(&server.url("bound:secret", NAME, parameters)).await;
    let error = refusal(&server.url("bound:wrong", NAME, parameters)).await;
    assert!(error.contains("password authentication failed"), "{error}");
    assert!(!error.contains("wrong"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let address = own_loopback().to_string();
    let _cluster = start(Options::new(folder.path()).setting("listen_addresses", &address)).await;
    let error = refusal(&format!("postgres://postgres@{address}/postgres?sslmode=require")).await;
    assert!(error.contains("server does not support TLS"), "{error}");
}
