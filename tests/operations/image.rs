//! The container image.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use blackbox::until;
use testkit::TestDatabase;

use crate::configured::ConfigFile;
use crate::started::Started;
use crate::tools::{of_python, run};
use crate::{operations, root, text};

#[test]
fn hadolint_has_nothing_to_say() {
    let Some(mut hadolint) = of_python("hadolint") else {
        return;
    };
    let said = run(hadolint
        .args(["--failure-threshold", "style"])
        .arg(operations("docker/Dockerfile")));
    assert_eq!(said, "");
}

/// The Rust files of a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_build_gets_every_file_that_a_crate_includes() {
    let dockerfile = text("docker/Dockerfile");
    let copies = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let names: Vec<_> = copies.flat_map(str::split_whitespace).collect();
    let ignored = text("docker/Dockerfile.dockerignore");
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut seen = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for rest in text.split("include_str!(\"../").skip(1) {
            let upwards = Path::new("..").join(rest.split('"').next().unwrap());
            let included = file.parent().unwrap().join(upwards).canonicalize().unwrap();
            let included = included.strip_prefix(root()).unwrap();
            let top = included.iter().next().unwrap().to_str().unwrap();
            assert!(names.contains(&top), "{top} is not copied");
            assert!(ignored.lines().any(|line| line == format!("!{top}")), "{top}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

#[tokio::test]
async fn the_health_check_detects_a_dead_process() {
    let script = operations("docker/alive");
    let alive = |port: &str| Command::new(&script).arg(port).status().unwrap().success();
    let database = TestDatabase::create().await;
    for words in [["serve", "--config", "-"], ["worker", "--config", "-"]] {
        let file = ConfigFile::of("[log]\nformat = \"json\"\n");
        let started = Started::with(&words.map(str::to_owned), &file, &database).await;
        let port = started.probes.rsplit_once(':').unwrap().1.to_owned();
        until("it is alive", async || alive(&port)).await;
        started.end().await;
        assert!(!alive(&port), "{words:?}");
    }
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pem = |name: &str, pem: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let certificate = pem("cert.pem", cert.pem());
    let key = pem("key.pem", signing_key.serialize_pem());
    let file = ConfigFile::of(&format!(
        "[log]\nformat = \"json\"\n[server.backoffice_tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n"
    ));
    let words = ["serve", "--config", "-"].map(str::to_owned);
    let started = Started::with(&words, &file, &database).await;
    let (_, port) = started.probes.rsplit_once(':').unwrap();
    assert!(alive(port), "with TLS of its own");
    started.end().await;
    // What is closed with bytes unread is reset: here after the alert.
    let resets = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = resets.local_addr().unwrap().port().to_string();
    let reset = std::thread::spawn(move || {
        let (mut connection, _) = resets.accept().unwrap();
        connection.read_exact(&mut [0]).unwrap();
        connection.write_all(b"\x15\x03\x03\x00\x02\x02\x32").unwrap();
    });
    assert!(alive(&port), "an alert, then a reset");
    reset.join().unwrap();
    // A listening port that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(!alive(&silent.local_addr().unwrap().port().to_string()));
}
