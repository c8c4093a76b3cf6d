//! The Compose deployment on one machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::TestDatabase;

use crate::configured::ConfigFile;
use crate::started::{Started, ends_well};
use crate::tools::run;
use crate::{PROGRAM, operations, text, words, yaml};

const PROGRAMS: [&str; 3] = ["migrate", "api", "worker"];

/// The Compose file with merge keys resolved.
fn compose() -> Value {
    let mut compose = yaml("docker/compose.yaml").remove(0);
    for service in compose["services"].as_object_mut().unwrap().values_mut() {
        let merged = service["<<"].take();
        let service = service.as_object_mut().unwrap();
        for (name, value) in merged.as_object().into_iter().flatten() {
            service.entry(name).or_insert(value.clone());
        }
    }
    compose
}

/// Executes the setup commands from the file's first lines, with a umask that hides files from others.
/// Returns the folder of secrets. The program replaces its image.
fn secrets() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.toml"), text("docker/config.toml")).unwrap();
    let commands: Vec<_> = text("docker/compose.yaml")
        .lines()
        .filter_map(|line| line.strip_prefix("#   ").map(str::to_owned))
        .filter(|line| !line.starts_with("docker compose"))
        .collect();
    let image = format!(
        "docker() {{ shift 3; {PROGRAM} \"$@\"; }}\nsudo() {{ test \"$1\" = chown || \"$@\"; }}\numask 077\n"
    );
    run(Command::new("bash")
        .args(["-eu", "-c", &format!("{image}{}", commands.join("\n"))])
        .current_dir(folder.path()));
    let secrets = folder.path().join("secrets");
    (folder, secrets)
}

/// The resulting configuration.
fn config() -> ConfigFile {
    let (_folder, secrets) = secrets();
    ConfigFile::of(&fs::read_to_string(secrets.join("config.toml")).unwrap())
}

#[test]
fn only_containers_can_read_the_secrets() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (_folder, secrets) = secrets();
    assert_eq!(mode(&secrets), 0o700);
    let compose = compose();
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        let file = Path::new(secret["file"].as_str().unwrap()).file_name();
        let file = secrets.join(file.unwrap());
        let expected = if name == "config.toml" { 0o400 } else { 0o644 };
        assert_eq!(mode(&file), expected, "{name}: containers run as others");
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("<password>") && !text.contains("<key>"), "{name}");
    }
    let password = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    let config = fs::read_to_string(secrets.join("config.toml")).unwrap();
    for service in ["pgbouncer:6432", "postgres:5432"] {
        let url = format!("seller_api:{password}@{service}/seller_api");
        assert!(config.contains(&url), "{config}");
        assert!(compose["services"][service.split(':').next().unwrap()].is_object());
    }
}

#[test]
fn no_command_line_shows_a_secret() {
    let head = text("docker/compose.yaml");
    let mut commands = head.lines().filter_map(|line| line.strip_prefix("#   "));
    let shown = commands.find(|line| line.starts_with("sed ") || line.contains(" -e "));
    assert_eq!(shown, None);
}

#[test]
fn services_are_locked_down_and_given_time_to_stop() {
    let (compose, stop) = (compose(), config().stop().as_secs());
    for name in PROGRAMS {
        let service = &compose["services"][name];
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        let options = &service["security_opt"];
        assert_eq!(options, &json!(["no-new-privileges:true"]), "{name}");
        assert!(service["mem_limit"].is_string(), "{name}");
        let grace = service["stop_grace_period"].as_str().unwrap();
        let grace: u64 = grace.trim_end_matches('s').parse().unwrap();
        assert!(grace > stop, "{name}");
        // Secrets are in no environment.
        assert!(service["environment"].is_null(), "{name}");
        // Two builds of one image at once would end in an error.
        assert_eq!(service["build"].is_object(), name == "migrate", "{name}");
    }
    let build = &compose["services"]["migrate"]["build"];
    let path = |field: &str| build[field].as_str().unwrap();
    let context = operations("docker").join(path("context"));
    assert!(context.join(path("dockerfile")).is_file());
    assert_eq!(compose["networks"]["inside"]["internal"], true);
    assert_eq!(compose["services"]["postgres"]["networks"], json!(["inside"]));
    for port in words(&compose["services"]["api"]["ports"]) {
        assert!(port.starts_with("127.0.0.1:"), "{port}");
    }
}

#[tokio::test]
async fn what_the_services_run_starts_and_stops() {
    let (compose, config) = (compose(), config());
    let database = TestDatabase::empty().await;
    let command = |name: &str| words(&compose["services"][name]["command"]);
    ends_well(&command("migrate"), &config, &database).await;
    for name in ["api", "worker"] {
        let started = Started::with(&command(name), &config, &database).await;
        started.becomes_good("/readyz").await;
        started.end().await;
    }
}
