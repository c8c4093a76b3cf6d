//! The systemd units.

use std::{fs, path::Path};

use seller_api::config::Sources;
use testkit::{TestDatabase, sealing_key};

use crate::configured::ConfigFile;
use crate::started::{Started, ends_well};
use crate::text;
use crate::tools::{of_machine, run};

const UNITS: [&str; 3] = [
    "seller-api@.service",
    "seller-api-worker.service",
    "seller-api-migrate.service",
];
const INSTALLED: &str = "/usr/local/bin/seller-api";
/// Maximum exposure level of `systemd-analyze security`, in tenths.
const EXPOSURE: &str = "15";

/// The value of a setting that a unit has once.
fn setting(unit: &str, key: &str) -> String {
    let text = text(&format!("systemd/{unit}"));
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let value = values.next().unwrap_or_else(|| panic!("{unit}: {key}"));
    assert_eq!(values.next(), None, "{unit}: {key}");
    value.to_owned()
}

/// The arguments after the program's name, of an instance with ports of its own.
fn arguments(unit: &str) -> Vec<String> {
    let command = setting(unit, "ExecStart").replace("%i:8080", "127.0.0.1:0");
    let command = command.replace("%i:8081", "127.0.0.1:0");
    let mut words = command.split(' ').map(str::to_owned);
    assert_eq!(words.next().as_deref(), Some(INSTALLED));
    words.collect()
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
    // An existing program replaces the one that is not installed.
    let copy = |name: &str, path: &Path| {
        let unit = text(&format!("systemd/{name}")).replace(INSTALLED, "/bin/true");
        fs::write(path, unit).unwrap();
    };
    let units = UNITS.map(|name| {
        let path = folder.path().join(name);
        copy(name, &path);
        path.display().to_string()
    });
    systemd_accepts(&units);
    let additions = folder.path().join("seller-api@.service.d");
    fs::create_dir(&additions).unwrap();
    copy("tls.conf", &additions.join("tls.conf"));
    systemd_accepts(&units[..1]);
}

#[tokio::test]
async fn the_units_commands_start_and_have_time_to_stop() {
    let database = TestDatabase::empty().await;
    let config = config();
    ends_well(&arguments(UNITS[2]), &config, &database).await;
    for name in &UNITS[..2] {
        let started = Started::with(&arguments(name), &config, &database).await;
        started.becomes_good("/readyz").await;
        started.end().await;
        let granted = setting(name, "TimeoutStopSec");
        let granted: u64 = granted.trim_end_matches('s').parse().unwrap();
        assert!(granted > config.stop().as_secs(), "{name}");
    }
}
