//! Everything on one machine, by Compose.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use testkit::TestDatabase;
use yaml_rust2::{Yaml, YamlLoader};

use crate::{
    PROGRAM,
    configured::{ConfigFile, stop},
    image, operations,
    started::{Started, ends_well},
    text,
    tools::run,
};

const PROGRAMS: [&str; 3] = ["migrate", "api", "worker"];

fn compose() -> Yaml {
    YamlLoader::load_from_str(&text("docker/compose.yaml"))
        .unwrap()
        .remove(0)
}

/// A field of a service: its own, or one that it takes over by a merge.
fn field<'a>(service: &'a Yaml, name: &str) -> &'a Yaml {
    match &service[name] {
        Yaml::BadValue => &service["<<"][name],
        own => own,
    }
}

fn strings(list: &Yaml) -> Vec<String> {
    let list = list.as_vec().unwrap_or_else(|| panic!("{list:?} is no list"));
    list.iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// A duration such as `40s`.
fn seconds(value: &Yaml) -> u64 {
    value
        .as_str()
        .unwrap()
        .strip_suffix('s')
        .unwrap()
        .parse()
        .unwrap()
}

/// Executes what the first lines of the file say is done once, as somebody whose files nobody else may read; gives the folder of
/// secrets. The program stands in for its image.
fn secrets() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        operations("docker/config.toml"),
        folder.path().join("config.toml"),
    )
    .unwrap();
    let commands: Vec<_> = text("docker/compose.yaml")
        .lines()
        .filter_map(|line| line.strip_prefix("#   ").map(str::to_owned))
        .filter(|line| !line.starts_with("docker compose"))
        .collect();
    let image = format!("docker() {{ shift 3; {PROGRAM} \"$@\"; }}\numask 077\n");
    run(Command::new("bash")
        .args(["-eu", "-c", &format!("{image}{}", commands.join("\n"))])
        .current_dir(folder.path()));
    let secrets = folder.path().join("secrets");
    (folder, secrets)
}

/// Its configuration, as it comes of that.
fn config() -> ConfigFile {
    let (_folder, secrets) = secrets();
    ConfigFile::of(&std::fs::read_to_string(secrets.join("config.toml")).unwrap())
}

#[test]
fn containers_can_read_the_secrets_and_nobody_else_of_the_machine_can() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (_folder, secrets) = secrets();
    assert_eq!(mode(&secrets), 0o700);
    let compose = compose();
    for (_, secret) in compose["secrets"].as_hash().unwrap() {
        let file = secrets.join(Path::new(secret["file"].as_str().unwrap()).file_name().unwrap());
        assert_eq!(mode(&file), 0o644, "{}: containers run as others", file.display());
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("<password>") && !text.contains("<key>"),
            "{}",
            file.display()
        );
    }
    let password = std::fs::read_to_string(secrets.join("postgres_password")).unwrap();
    let config = std::fs::read_to_string(secrets.join("config.toml")).unwrap();
    for service in ["pgbouncer:6432", "postgres:5432"] {
        assert!(
            config.contains(&format!("seller_api:{password}@{service}/seller_api")),
            "{config}"
        );
        assert!(!compose["services"][service.split(':').next().unwrap()].is_badvalue());
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
    let compose = compose();
    let arguments = &compose["services"]["postgres"]["environment"]["POSTGRES_INITDB_ARGS"];
    assert_eq!(
        arguments.as_str(),
        Some("--encoding=UTF8 --locale=C.UTF-8 --lc-collate=C")
    );
    let page = std::fs::read_to_string(crate::root().join("docs/operations/README.md")).unwrap();
    assert!(page.contains("ENCODING 'UTF8'\n  LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C.UTF-8';"));
}

#[test]
fn the_machine_is_a_trusted_proxy_and_nobody_else() {
    let network = &compose()["networks"]["outside"]["ipam"]["config"][0];
    let machine = network["gateway"].as_str().unwrap();
    let trusted = config().with(&image::environment()).server.trusted_proxies;
    let trusted: Vec<_> = trusted.0.iter().map(|network| network.0.to_string()).collect();
    assert!(
        matches!(trusted.as_slice(), [only] if only.split('/').next() == Some(machine)),
        "{trusted:?}"
    );
}

#[test]
fn programs_are_locked_down_and_given_time_to_stop() {
    let (compose, effective) = (compose(), config().with(&image::environment()));
    for name in PROGRAMS {
        let service = &compose["services"][name];
        assert_eq!(field(service, "read_only").as_bool(), Some(true), "{name}");
        assert_eq!(strings(field(service, "cap_drop")), ["ALL"], "{name}");
        assert_eq!(
            strings(field(service, "security_opt")),
            ["no-new-privileges:true"],
            "{name}"
        );
        assert!(field(service, "mem_limit").as_str().is_some(), "{name}");
        assert!(
            seconds(field(service, "stop_grace_period")) > stop(&effective).as_secs(),
            "{name}"
        );
        assert!(
            field(service, "environment").is_badvalue(),
            "{name}: secrets are in no environment"
        );
        let dockerfile = field(service, "build")["dockerfile"].as_str().unwrap();
        let context = operations("docker").join(field(service, "build")["context"].as_str().unwrap());
        assert!(context.join(dockerfile).is_file(), "{name}: {dockerfile}");
    }
}

#[test]
fn whatever_a_service_refers_to_is_declared() {
    let compose = compose();
    let services = compose["services"].as_hash().unwrap();
    for (name, service) in services {
        let name = name.as_str().unwrap();
        for (key, top) in [("networks", "networks"), ("secrets", "secrets")] {
            for wanted in field(service, key).as_vec().into_iter().flatten() {
                assert!(
                    !compose[top][wanted.as_str().unwrap()].is_badvalue(),
                    "{name}: {wanted:?}"
                );
            }
        }
        for (other, how) in field(service, "depends_on").as_hash().into_iter().flatten() {
            let other = &compose["services"][other.as_str().unwrap()];
            assert!(!other.is_badvalue(), "{name}: it waits for nobody");
            if how["condition"].as_str() == Some("service_healthy") {
                assert!(
                    !field(other, "healthcheck").is_badvalue(),
                    "{name}: it waits for ever"
                );
            }
        }
        for mounted in field(service, "volumes").as_vec().into_iter().flatten() {
            let (source, _) = mounted.as_str().unwrap().split_once(':').unwrap();
            let there = match source.strip_prefix("./") {
                Some(file) => operations("docker").join(file).is_file(),
                None => !compose["volumes"][source].is_badvalue(),
            };
            assert!(there, "{name}: {source}");
        }
    }
    assert_eq!(compose["networks"]["inside"]["internal"].as_bool(), Some(true));
    assert_eq!(strings(&compose["services"]["postgres"]["networks"]), ["inside"]);
}

#[test]
fn published_ports_are_listened_on_and_reached_from_this_machine_alone() {
    let effective = config().with(&image::environment());
    let ports = strings(&compose()["services"]["api"]["ports"]);
    for (published, bound) in ports
        .iter()
        .zip([effective.server.bind, effective.server.backoffice_bind])
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
    let version = |service: &str, before: &str| {
        let image = compose["services"][service]["image"].as_str().unwrap();
        let tag = image.split_once(before).unwrap().1;
        let numbers = tag.split(|letter: char| !letter.is_ascii_digit());
        numbers
            .take(2)
            .filter_map(|number| number.parse().ok())
            .collect::<Vec<u32>>()
    };
    assert!(version("pgbouncer", ":v") >= vec![1, 21]);
    assert!(version("postgres", ":") >= vec![15]);
    let mut section = String::new();
    let mut settings = std::collections::BTreeMap::new();
    for line in text("docker/pgbouncer.ini").lines() {
        if let Some(inner) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inner.clone_into(&mut section);
        } else if !line.is_empty() && !line.starts_with(';') {
            let (key, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
            settings.insert(format!("{section}.{key}"), value.to_owned());
        }
    }
    assert_eq!(settings["pgbouncer.pool_mode"], "transaction");
    assert!(
        settings["pgbouncer.max_prepared_statements"]
            .parse::<u32>()
            .unwrap()
            > 0
    );
    assert!(settings["databases.seller_api"].contains("host=postgres port=5432"));
    assert_eq!(settings["pgbouncer.auth_file"], "/run/secrets/userlist");
    let head = text("docker/config.toml");
    assert!(head.contains(&format!(
        "@pgbouncer:{}/seller_api",
        settings["pgbouncer.listen_port"]
    )));
    let server = strings(&compose["services"]["postgres"]["command"]);
    let most = server
        .iter()
        .find_map(|word| word.strip_prefix("max_connections="));
    let most = most.unwrap().parse::<u32>().unwrap();
    assert!(settings["pgbouncer.default_pool_size"].parse::<u32>().unwrap() < most);
}

#[tokio::test]
async fn what_the_services_run_starts_and_stops() {
    let (compose, config) = (compose(), config());
    let database = TestDatabase::empty().await;
    let words = |name: &str| strings(&compose["services"][name]["command"]);
    ends_well(&words("migrate"), &config, &database).await;
    for name in ["api", "worker"] {
        let started = Started::with(&words(name), &config, &database).await;
        started.becomes_good("/readyz").await;
        started.end().await;
    }
}
