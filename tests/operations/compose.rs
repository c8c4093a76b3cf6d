//! The Compose deployment on one machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::TestDatabase;

use crate::configured::{ConfigFile, stop};
use crate::started::{Started, ends_well};
use crate::tools::run;
use crate::{PROGRAM, image, operations, text, words, yaml};

const PROGRAMS: [&str; 3] = ["migrate", "api", "worker"];

/// The Compose file with merge keys resolved.
fn compose() -> Value {
    let mut compose = yaml("docker/compose.yaml").remove(0);
    for service in compose["services"].as_object_mut().unwrap().values_mut() {
        let merged = service["<<"].take();
        for (name, value) in merged.as_object().into_iter().flatten() {
            service
                .as_object_mut()
                .unwrap()
                .entry(name)
                .or_insert(value.clone());
        }
    }
    compose
}

/// The names in a list or an object; empty if there is neither.
fn names(of: &Value) -> Vec<&str> {
    match of {
        Value::Object(fields) => fields.keys().map(String::as_str).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Executes the setup commands from the file's first lines, with a umask that hides files from others.
/// Returns the folder of secrets. The program replaces its image.
fn secrets() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(
        operations("docker/config.toml"),
        folder.path().join("config.toml"),
    )
    .unwrap();
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
    for name in names(&compose["secrets"]) {
        let file = Path::new(compose["secrets"][name]["file"].as_str().unwrap()).file_name();
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
fn the_cluster_is_made_as_the_page_has_it() {
    let arguments = &compose()["services"]["postgres"]["environment"]["POSTGRES_INITDB_ARGS"];
    assert_eq!(*arguments, "--encoding=UTF8 --locale=C.UTF-8 --lc-collate=C");
    let page = fs::read_to_string(crate::root().join("docs/operations/README.md")).unwrap();
    assert!(page.contains("ENCODING 'UTF8'\n  LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C.UTF-8';"));
}

#[test]
fn only_the_host_is_a_trusted_proxy() {
    let machine = compose()["networks"]["outside"]["ipam"]["config"][0]["gateway"].clone();
    let trusted = config().with(&image::environment()).server.trusted_proxies;
    let trusted = trusted.iter().map(|network| network.0.to_string());
    let trusted: Vec<_> = trusted.map(|network| json!(network.split('/').next())).collect();
    assert_eq!(trusted, [machine]);
}

#[test]
fn programs_are_locked_down_and_given_time_to_stop() {
    let (compose, effective) = (compose(), config().with(&image::environment()));
    for name in PROGRAMS {
        let service = &compose["services"][name];
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(
            service["security_opt"],
            json!(["no-new-privileges:true"]),
            "{name}"
        );
        assert!(service["mem_limit"].is_string(), "{name}");
        let grace = service["stop_grace_period"]
            .as_str()
            .unwrap()
            .trim_end_matches('s');
        assert!(
            grace.parse::<u64>().unwrap() > stop(&effective).as_secs(),
            "{name}"
        );
        assert!(
            service["environment"].is_null(),
            "{name}: secrets are in no environment"
        );
        let build = |field: &str| service["build"][field].as_str().unwrap();
        let context = operations("docker").join(build("context"));
        assert!(context.join(build("dockerfile")).is_file(), "{name}");
    }
}

#[test]
fn whatever_a_service_refers_to_is_declared() {
    let compose = compose();
    for (name, service) in compose["services"].as_object().unwrap() {
        for top in ["networks", "secrets"] {
            for wanted in names(&service[top]) {
                assert!(compose[top].get(wanted).is_some(), "{name}: {wanted}");
            }
        }
        for wanted in names(&service["depends_on"]) {
            let other = &compose["services"][wanted];
            assert!(other.is_object(), "{name}: it waits for nobody");
            let is_healthy = service["depends_on"][wanted]["condition"] == "service_healthy";
            assert!(
                !is_healthy || other["healthcheck"].is_object(),
                "{name}: it waits for ever"
            );
        }
        for mounted in names(&service["volumes"]) {
            let (source, _) = mounted.split_once(':').unwrap();
            let there = match source.strip_prefix("./") {
                Some(file) => operations("docker").join(file).is_file(),
                None => compose["volumes"].get(source).is_some(),
            };
            assert!(there, "{name}: {source}");
        }
    }
    assert_eq!(compose["networks"]["inside"]["internal"], true);
    assert_eq!(compose["services"]["postgres"]["networks"], json!(["inside"]));
}

#[test]
fn published_ports_are_listened_on_and_reached_from_this_machine_alone() {
    let effective = config().with(&image::environment());
    let ports = words(&compose()["services"]["api"]["ports"]);
    for (published, bound) in ports
        .iter()
        .zip([effective.server.bind.0, effective.server.backoffice_bind.0])
    {
        let port = bound.port();
        assert_eq!(*published, format!("127.0.0.1:{port}:{port}"));
        assert!(bound.ip().is_unspecified(), "{bound}");
    }
    assert_eq!(ports.len(), 2);
}

#[test]
fn the_pooler_is_one_that_the_service_works_through() {
    let compose = compose();
    let version = |service: &str, before: &str| -> Vec<u32> {
        let image = compose["services"][service]["image"].as_str().unwrap();
        let tag = image.split_once(before).unwrap().1;
        let numbers = tag.split(|letter: char| !letter.is_ascii_digit()).take(2);
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    assert!(version("pgbouncer", ":v") >= vec![1, 21] && version("postgres", ":") >= vec![15]);
    let mut section = String::new();
    let mut settings = BTreeMap::new();
    for line in text("docker/pgbouncer.ini").lines() {
        if let Some(inner) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inner.clone_into(&mut section);
        } else if !line.is_empty() && !line.starts_with(';') {
            let (key, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
            settings.insert(format!("{section}.{key}"), value.to_owned());
        }
    }
    assert_eq!(settings["pgbouncer.pool_mode"], "transaction");
    let number = |key: &str| settings[key].parse::<u32>().unwrap();
    assert!(number("pgbouncer.max_prepared_statements") > 0);
    assert!(settings["databases.seller_api"].contains("host=postgres port=5432"));
    assert_eq!(settings["pgbouncer.auth_file"], "/run/secrets/userlist");
    let head = text("docker/config.toml");
    assert!(head.contains(&format!(
        "@pgbouncer:{}/seller_api",
        number("pgbouncer.listen_port")
    )));
    let server = words(&compose["services"]["postgres"]["command"]);
    let mut server = server.iter();
    let most = server.find_map(|word| word.strip_prefix("max_connections="));
    assert!(number("pgbouncer.default_pool_size") < most.unwrap().parse().unwrap());
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
