//! The systemd units.

use std::{fs, path::Path};

use seller_api::config::Sources;
use testkit::{TestDatabase, sealing_key};

use crate::configured::{ConfigFile, stop};
use crate::started::{Started, ends_well};
use crate::tools::{of_machine, run};
use crate::{operations, text};

const UNITS: [&str; 3] = [
    "seller-api@.service",
    "seller-api-worker.service",
    "seller-api-migrate.service",
];
const INSTALLED: &str = "/usr/local/bin/seller-api";
/// Maximum exposure level of `systemd-analyze security`, in tenths.
const EXPOSURE: &str = "15";

/// A unit: its settings with their sections, in order.
struct Unit(Vec<(String, String, String)>);

impl Unit {
    /// Parses a unit file (systemd.syntax(7)) without line continuations, which these files do not use.
    fn read(name: &str) -> Self {
        let (mut section, mut settings) = (String::new(), Vec::new());
        for line in text(&format!("systemd/{name}")).lines() {
            if let Some(inner) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                inner.clone_into(&mut section);
            } else if !line.is_empty() && !line.starts_with('#') {
                let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
                assert!(!section.is_empty() && !line.ends_with('\\'), "{name}: {line}");
                settings.push((section.clone(), key.to_owned(), value.to_owned()));
            }
        }
        Self(settings)
    }

    fn all(&self, key: &str) -> Vec<&str> {
        let of = self.0.iter().filter(|(_, other, _)| other == key);
        of.map(|(_, _, value)| value.as_str()).collect()
    }

    #[track_caller]
    fn one(&self, key: &str) -> &str {
        let all = self.all(key);
        assert_eq!(all.len(), 1, "{key}: {all:?}");
        all[0]
    }

    /// The arguments after the program's name, of an instance with ports of its own.
    fn words(&self) -> Vec<String> {
        let command = self.one("ExecStart").replace("%i:8080", "127.0.0.1:0");
        let command = command.replace("%i:8081", "127.0.0.1:0");
        let mut words = command.split(' ').map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some(INSTALLED));
        words.collect()
    }
}

/// The configuration with a key in place of the placeholder.
fn config() -> ConfigFile {
    ConfigFile::of(&text("systemd/config.toml").replace("<key>", &sealing_key()))
}

#[test]
fn the_published_configuration_is_refused_without_a_key() {
    let published = ConfigFile::of(&text("systemd/config.toml"));
    let refused = Sources {
        file: Some(published.path.clone()),
        ..Sources::default()
    };
    let refused = refused.load().unwrap_err().to_string();
    assert!(refused.contains("`keys.sealing` cannot be used"), "{refused}");
}

/// Copies of the units that systemd's tools accept here: existing programs replace those that are not
/// installed.
fn copies(into: &Path) -> Vec<String> {
    let copy = |name: &&str| {
        let path = into.join(name);
        let unit = text(&format!("systemd/{name}")).replace(INSTALLED, "/bin/true");
        fs::write(&path, unit).unwrap();
        path.display().to_string()
    };
    UNITS.iter().map(copy).collect()
}

/// Asserts that systemd accepts these units and finds their exposure low enough. Skipped without systemd's
/// tools.
fn systemd_accepts(units: &[String]) {
    let Some(mut analyze) = of_machine("systemd-analyze") else {
        return;
    };
    assert_eq!(run(analyze.args(["verify", "--man=no"]).args(units)), "");
    let threshold = format!("--threshold={EXPOSURE}");
    for unit in units {
        let mut analyze = of_machine("systemd-analyze").unwrap();
        run(analyze.args(["security", "--offline=true", "--no-pager", &threshold, unit]));
    }
}

#[test]
fn systemd_accepts_the_units_with_and_without_tls() {
    let folder = tempfile::tempdir().unwrap();
    let mut units = copies(folder.path());
    systemd_accepts(&units);
    let additions = folder.path().join("seller-api@.service.d");
    fs::create_dir(&additions).unwrap();
    let addition = text("systemd/tls.conf").replace(INSTALLED, "/bin/true");
    fs::write(additions.join("tls.conf"), addition).unwrap();
    units.truncate(1);
    systemd_accepts(&units);
}

#[test]
fn the_units_have_the_same_restrictions() {
    let free = "Description ExecStart LoadCredential Type NotifyAccess Restart RestartSec WatchdogSec TimeoutStopSec TimeoutStartSec \
        LimitNOFILE MemoryMax TasksMax StartLimitIntervalSec WantedBy";
    let free: Vec<_> = free.split(' ').collect();
    let locks = UNITS.map(|name| {
        let mut unit = Unit::read(name).0;
        unit.retain(|(_, key, _)| !free.contains(&key.as_str()));
        unit
    });
    assert_eq!(locks[0], locks[1]);
    assert_eq!(locks[0], locks[2]);
    assert!(operations("systemd").read_dir().unwrap().count() == UNITS.len() + 2);
}

#[test]
fn the_configuration_is_a_credential_and_valid() {
    let config = config();
    let effective = config.with(&[]);
    for name in UNITS {
        let unit = Unit::read(name);
        let (credential, source) = unit.one("LoadCredential").split_once(':').unwrap();
        assert_eq!(source, format!("/etc/seller-api/{credential}"));
        let words = unit.words();
        assert!(words.contains(&format!("%d/{credential}")), "{words:?}");
        assert!(
            unit.all("Environment").is_empty(),
            "{name}: secrets are in no environment"
        );
    }
    for name in &UNITS[..2] {
        let unit = Unit::read(name);
        assert_eq!(unit.one("Type"), "notify");
        let patience = unit.one("TimeoutStopSec").strip_suffix('s').unwrap();
        assert!(
            patience.parse::<u64>().unwrap() > stop(&effective).as_secs(),
            "{name}"
        );
    }
    assert_eq!(Unit::read(UNITS[2]).one("Type"), "oneshot");
}

#[test]
fn the_drop_in_for_tls_has_a_port_a_key_and_a_reload() {
    let addition = text("systemd/tls.conf");
    let config = addition
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .skip_while(|line| *line != "[server]")
        .take_while(|line| !line.starts_with("groupadd"))
        .collect::<Vec<_>>()
        .join("\n");
    let folder = "/etc/seller-api/tls/";
    let effective = ConfigFile::of(&config).with(&[]);
    assert!(effective.server.bind.0.port() < 1_024, "{config}");
    assert!(effective.server.trusted_proxies.is_empty(), "no proxy");
    assert!(config.matches(folder).count() == 2, "{config}");
    for setting in [
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        "PrivateUsers=no",
        // The unit's own says where the public listener is.
        "ExecStart=",
        "SupplementaryGroups=seller-api-tls",
        "ExecReload=/bin/kill -HUP $MAINPID",
    ] {
        assert!(addition.lines().any(|line| line == setting), "{setting}");
    }
    // Without TLS the signal would stop the process.
    assert!(Unit::read(UNITS[0]).all("ExecReload").is_empty());
}

#[tokio::test]
async fn the_units_commands_start_and_stop() {
    let database = TestDatabase::empty().await;
    let config = config();
    ends_well(&Unit::read(UNITS[2]).words(), &config, &database).await;
    for name in &UNITS[..2] {
        let started = Started::with(&Unit::read(name).words(), &config, &database).await;
        started.becomes_good("/readyz").await;
        started.end().await;
    }
}
