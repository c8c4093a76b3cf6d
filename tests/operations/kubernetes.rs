//! The manifests for Kubernetes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use testkit::TestDatabase;

use crate::configured::{ConfigFile, variables};
use crate::started::{Started, ends_well};
use crate::tools::{of_python, run};
use crate::{PROGRAM, operations, text, words, yaml};

const FILES: [&str; 5] = ["config", "network", "migrate", "api", "worker"];
const PROBES: [&str; 3] = ["startupProbe", "livenessProbe", "readinessProbe"];

/// The objects of a kind, of all files.
fn of_kind(kind: &str) -> Vec<Value> {
    let objects = FILES
        .iter()
        .flat_map(|file| yaml(&format!("kubernetes/{file}.yaml")));
    let objects: Vec<_> = objects.filter(|object| object["kind"] == kind).collect();
    assert!(!objects.is_empty(), "{kind}");
    objects
}

/// All workloads: the deployments and the job.
fn workloads() -> Vec<Value> {
    [of_kind("Deployment"), of_kind("Job")].concat()
}

fn container(workload: &Value) -> &Value {
    let containers = &workload["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
    &containers[0]
}

fn config() -> ConfigFile {
    ConfigFile::of(of_kind("ConfigMap")[0]["data"]["config.toml"].as_str().unwrap())
}

#[test]
fn manifests_match_the_kubernetes_schemas() {
    assert_eq!(operations("kubernetes").read_dir().unwrap().count(), FILES.len());
    for file in FILES {
        let Some(mut validate) = of_python("kubernetes-validate") else {
            return;
        };
        let file = operations(&format!("kubernetes/{file}.yaml"));
        run(validate.args(["--strict", "--quiet"]).arg(file));
    }
}

#[test]
fn pods_are_locked_down_and_given_time_to_stop() {
    let stop = config().stop().as_secs();
    for workload in workloads() {
        let pod = &workload["spec"]["template"]["spec"];
        let container = container(&workload);
        for (of, pointer, value) in [
            (pod, "/automountServiceAccountToken", json!(false)),
            (pod, "/securityContext/runAsNonRoot", json!(true)),
            (
                pod,
                "/securityContext/seccompProfile/type",
                json!("RuntimeDefault"),
            ),
            (
                container,
                "/securityContext/allowPrivilegeEscalation",
                json!(false),
            ),
            (container, "/securityContext/readOnlyRootFilesystem", json!(true)),
            (container, "/securityContext/capabilities/drop", json!(["ALL"])),
        ] {
            assert_eq!(of.pointer(pointer), Some(&value), "{pointer}");
        }
        let resources = &container["resources"];
        assert!(resources["requests"]["cpu"].is_string() && resources["limits"]["memory"].is_string());
        if workload["kind"] == "Deployment" {
            assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= stop + 5);
        }
    }
}

/// Executes the setup commands from the configuration's first lines, with the real program and without a
/// cluster. Returns the files of the Secrets. Others must not be able to read them, and they must not be on a
/// command line.
fn secrets() -> BTreeMap<&'static str, String> {
    let folder = tempfile::tempdir().unwrap();
    let head = text("kubernetes/config.yaml");
    assert!(!head.contains("--from-literal"), "a command line shows it");
    let commands: Vec<_> = head
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .collect();
    let kubectl =
        "kubectl() { case \"$*\" in *--from-env-file=*) cp --preserve=mode \"${7##*=}\" \"$6\";; esac; }";
    let program = format!("seller-api() {{ {PROGRAM} \"$@\"; }}");
    let script = format!("{kubectl}\n{program}\n{}", commands.join("\n"));
    run(Command::new("bash")
        .args(["-eu", "-c", &script])
        .current_dir(folder.path()));
    let names = ["seller-api", "seller-api-migrate"];
    for file in names.iter().chain(&["sealing.key"]) {
        let metadata = std::fs::metadata(folder.path().join(file)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 3);
    let text = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    names.map(|name| (name, text(name))).into()
}

#[test]
fn secrets_come_from_a_secret_and_their_names_are_variables() {
    let (given, known) = (secrets(), variables());
    for line in given.values().flat_map(|text| text.lines()) {
        let (name, value) = line.split_once('=').unwrap();
        assert!(known.contains(name) && !value.is_empty(), "{line}");
    }
    let data = of_kind("ConfigMap")[0]["data"].clone();
    for workload in workloads() {
        let container = container(&workload);
        let migrates = workload["kind"] == "Job";
        let secret = &given[container["envFrom"][0]["secretRef"]["name"].as_str().unwrap()];
        assert_eq!(secret.contains("//seller_api_owner:"), migrates);
        assert_eq!(secret.contains("KEYS__SEALING="), !migrates);
        assert!(container["env"].is_null());
        let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
        let file = words(&container["args"]).pop().unwrap();
        let file = file.strip_prefix(mount).unwrap().trim_start_matches('/');
        assert!(data[file].is_string(), "{file}");
    }
}

#[tokio::test]
async fn the_pods_command_starts_answers_its_probes_and_stops() {
    let (config, database) = (config(), TestDatabase::empty().await);
    ends_well(&words(&container(&of_kind("Job")[0])["args"]), &config, &database).await;
    for deployment in of_kind("Deployment") {
        let container = container(&deployment);
        let started = Started::with(&words(&container["args"]), &config, &database).await;
        for probe in PROBES {
            started
                .becomes_good(container[probe]["httpGet"]["path"].as_str().unwrap())
                .await;
        }
        assert_eq!(started.status("/metrics").await, 200);
        started.end().await;
    }
}
