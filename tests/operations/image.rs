//! The container image.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use testkit::TestDatabase;

use crate::configured::{ConfigFile, secrets, variables};
use crate::dockerfile::{Stage, stages};
use crate::started::Started;
use crate::tools::{of_python, run};
use crate::{operations, root, text};

const DOCKERFILE: &str = "docker/Dockerfile";

fn last_stage() -> Stage {
    stages(&text(DOCKERFILE)).pop().unwrap()
}

/// The environment of the image's containers.
pub(crate) fn environment() -> Vec<(String, String)> {
    last_stage().environment()
}

#[test]
fn hadolint_has_nothing_to_say() {
    let Some(mut hadolint) = of_python("hadolint") else {
        return;
    };
    let said = run(hadolint
        .args(["--failure-threshold", "style"])
        .arg(operations(DOCKERFILE)));
    assert_eq!(said, "");
}

#[test]
fn the_image_runs_as_an_unprivileged_user_and_has_no_shell() {
    let stage = last_stage();
    let (user, group) = stage.one("USER").rest.split_once(':').unwrap();
    for id in [user, group] {
        assert!(id.parse::<u32>().unwrap() >= 1_000, "{id}");
    }
    assert_eq!(stage.one("ENTRYPOINT").list(), ["/usr/local/bin/seller-api"]);
    assert_eq!(stage.one("CMD").list(), ["serve"]);
    let users = stage.steps.iter().position(|step| step.name == "USER");
    assert!(
        users
            > stage
                .steps
                .iter()
                .rposition(|step| matches!(step.name.as_str(), "COPY" | "RUN"))
    );
}

#[test]
fn the_image_holds_no_secret_and_no_unknown_variable() {
    let (secrets, known) = (secrets(), variables());
    for stage in stages(&text(DOCKERFILE)) {
        assert!(
            stage.all("ARG").is_empty(),
            "what is passed in stays in the image's history"
        );
        for (name, _) in stage.environment() {
            assert!(known.contains(&name) && !secrets.contains(&name), "{name}");
        }
    }
    let ignored = text("docker/Dockerfile.dockerignore");
    let patterns: Vec<_> = ignored
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert_eq!(patterns[0], "*", "what nobody named stays out");
    // The folder in which compose.yaml has its secrets.
    let secrets = "docs/operations/docker/secrets";
    let place = |wanted: &str| patterns.iter().position(|line| *line == wanted);
    assert!(
        place(secrets) > place("!docs"),
        "what comes later counts: {patterns:?}"
    );
    let kept_out = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    assert!(
        kept_out
            .lines()
            .any(|line| line.trim_start_matches('/') == secrets)
    );
    let admitted: BTreeSet<_> = patterns
        .iter()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let copied: BTreeSet<_> = stages(&text(DOCKERFILE))
        .iter()
        .flat_map(|stage| stage.steps.clone())
        .filter(|step| step.name == "COPY" && step.flag("from").is_none())
        .flat_map(|step| {
            let operands = step.operands().into_iter().map(str::to_owned).collect::<Vec<_>>();
            operands[..operands.len() - 1].to_vec()
        })
        .collect();
    for source in &copied {
        assert!(root().join(source).exists(), "{source}");
        let top = source.split('/').next().unwrap();
        assert!(admitted.contains(top), "{source} is ignored");
    }
}

#[test]
fn the_compiler_is_the_repositorys() {
    let toolchain = std::fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let channel = toolchain.split('"').nth(1).unwrap();
    let stages = stages(&text(DOCKERFILE));
    assert!(
        stages[0].from.rest.starts_with(&format!("rust:{channel}-")),
        "{channel}"
    );
}

#[test]
fn exposed_ports_are_the_ones_listened_on() {
    let config = ConfigFile::of("").with(&environment());
    let listened = [
        config.server.bind.0,
        config.server.backoffice_bind.0,
        config.worker.bind.0,
    ];
    let ports = listened.map(|address| address.port().to_string());
    assert_eq!(last_stage().one("EXPOSE").operands(), ports);
    assert!(
        listened.iter().all(|address| address.ip().is_unspecified()),
        "{listened:?}"
    );
    let alive = text("docker/alive");
    for port in &ports[1..] {
        assert!(alive.contains(&format!("port={port}\n")), "{port}");
    }
}

#[tokio::test]
async fn the_health_check_detects_a_dead_process() {
    let stage = last_stage();
    assert_eq!(stage.one("HEALTHCHECK").list(), ["/usr/local/bin/alive"]);
    let placed = stage
        .all("COPY")
        .into_iter()
        .find(|step| step.operands()[1] == "/usr/local/bin/alive");
    let script = root().join(placed.unwrap().operands()[0]);
    let alive = |port: &str| Command::new(&script).arg(port).status().unwrap().success();
    let database = TestDatabase::create().await;
    for words in [["serve", "--config", "-"], ["worker", "--config", "-"]] {
        let file = ConfigFile::of("[log]\nformat = \"json\"\n");
        let started = Started::with(&words.map(str::to_owned), &file, &database).await;
        let port = started.probes.rsplit_once(':').unwrap().1.to_owned();
        assert!(alive(&port), "{words:?}");
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
    let (certificate, key) = (
        pem("cert.pem", cert.pem()),
        pem("key.pem", signing_key.serialize_pem()),
    );
    let file = ConfigFile::of(&format!(
        "[log]\nformat = \"json\"\n[server.backoffice_tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n"
    ));
    let words = ["serve", "--config", "-"].map(str::to_owned);
    let started = Started::with(&words, &file, &database).await;
    assert!(
        alive(started.probes.rsplit_once(':').unwrap().1),
        "with TLS of its own"
    );
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
