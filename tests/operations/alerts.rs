//! Checks the alert rules and the configurations of Prometheus with Prometheus's own tool.

use std::{collections::BTreeSet, fs, path::Path};

use yaml_rust2::YamlLoader;

use crate::tools::{installed, run};
use crate::{operations, root, text};

const CASES: &str = "tests/operations/alerts.test.yml";

fn alerts() -> BTreeSet<String> {
    let rules = YamlLoader::load_from_str(&text("alerts.yml")).unwrap().remove(0);
    let groups = rules["groups"].as_vec().unwrap().iter();
    groups
        .flat_map(|group| group["rules"].as_vec().unwrap())
        .filter_map(|rule| rule["alert"].as_str().map(str::to_owned))
        .collect()
}

/// The alerts that at least one case expects to fire.
fn fired() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(CASES)).unwrap();
    let cases = YamlLoader::load_from_str(&text).unwrap().remove(0);
    let cases = cases["tests"].as_vec().unwrap().iter();
    cases
        .flat_map(|case| case["alert_rule_test"].as_vec().unwrap())
        .filter(|expected| !expected["exp_alerts"].as_vec().unwrap().is_empty())
        .map(|expected| expected["alertname"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_alert_has_been_seen_to_fire() {
    assert_eq!(fired(), alerts());
}

#[test]
fn alerts_fire_for_what_they_are_about() {
    let Some(mut promtool) = installed("promtool") else {
        return;
    };
    run(promtool.args(["test", "rules"]).arg(root().join(CASES)));
}

#[test]
fn what_collects_is_configured_soundly_and_calls_the_job_what_the_rules_do() {
    for name in ["machines.yml", "kubernetes.yml"] {
        let said = text(&format!("prometheus/{name}"));
        let config = YamlLoader::load_from_str(&said).unwrap().remove(0);
        let scraped = config["scrape_configs"].as_vec().unwrap();
        assert_eq!(scraped[0]["job_name"].as_str(), Some("seller-api"), "{name}");
        let Some(mut promtool) = installed("promtool") else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, without_kubernetes(&said, &operations("alerts.yml"))).unwrap();
        run(promtool.args(["check", "config"]).arg(&path));
    }
}

/// Debian's build of the tool lacks Kubernetes service discovery: a static target replaces it.
fn without_kubernetes(config: &str, rules: &Path) -> String {
    let config = config.replace("../alerts.yml", &rules.display().to_string());
    let Some((before, rest)) = config.split_once("    kubernetes_sd_configs:\n") else {
        return config;
    };
    let (_, after) = rest.split_once("    relabel_configs:\n").unwrap();
    format!("{before}    static_configs: [{{targets: ['10.0.0.1:8081']}}]\n    relabel_configs:\n{after}")
}
