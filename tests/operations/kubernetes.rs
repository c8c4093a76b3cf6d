//! The manifests for Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use seller_api::config::Config;
use serde_json::{Value, json};
use testkit::TestDatabase;

use crate::configured::{ConfigFile, stop, variables};
use crate::started::{Started, ends_well};
use crate::tools::{of_python, run};
use crate::{PROGRAM, image, operations, text, words, yaml};

const FILES: [&str; 5] = ["config", "network", "migrate", "api", "worker"];
const PROBES: [&str; 3] = ["startupProbe", "livenessProbe", "readinessProbe"];

/// All objects of all files.
fn objects() -> impl Iterator<Item = Value> {
    FILES
        .iter()
        .flat_map(|file| yaml(&format!("kubernetes/{file}.yaml")))
}

fn of_kind(kind: &str) -> Vec<Value> {
    let objects: Vec<_> = objects().filter(|object| object["kind"] == kind).collect();
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

fn effective() -> Config {
    config().with(&image::environment())
}

/// The ports of a deployment's container by name, as configured. The last one is for probes.
fn listened(deployment: &Value, config: &Config) -> Vec<(&'static str, u16)> {
    if words(&container(deployment)["args"])[0] == "serve" {
        let (api, office) = (config.server.bind.0, config.server.backoffice_bind.0);
        vec![("api", api.port()), ("backoffice", office.port())]
    } else {
        vec![("probes", config.worker.bind.0.port())]
    }
}

/// The name of a deployment's probe port.
fn watched(deployment: &Value) -> &'static str {
    listened(deployment, &effective()).pop().unwrap().0
}

#[test]
fn metrics_are_collected_of_every_pod_as_the_job_of_the_alert_rules() {
    let deployments = of_kind("Deployment");
    for deployment in &deployments {
        let pod = &deployment["spec"]["template"]["metadata"];
        assert_eq!(pod["labels"]["app.kubernetes.io/name"], "seller-api");
        assert!(
            pod["annotations"].is_null(),
            "what collects by annotations calls the job otherwise"
        );
    }
    let watched: BTreeSet<_> = deployments.iter().map(watched).collect();
    let scraped = &yaml("prometheus/kubernetes.yml")[0]["scrape_configs"][0];
    let found = &scraped["kubernetes_sd_configs"][0];
    assert_eq!(found["namespaces"]["names"][0], "seller-api");
    assert_eq!(
        found["selectors"][0]["label"],
        "app.kubernetes.io/name=seller-api"
    );
    let kept = scraped["relabel_configs"][0]["regex"].as_str().unwrap();
    assert_eq!(kept.split('|').collect::<BTreeSet<_>>(), watched);
    let monitor = &yaml("prometheus/pod-monitor.yaml")[0];
    assert_eq!(monitor["metadata"]["namespace"], "seller-api");
    let spec = &monitor["spec"];
    assert_eq!(spec["jobLabel"], "app.kubernetes.io/name");
    assert_eq!(
        spec["selector"]["matchLabels"]["app.kubernetes.io/name"],
        "seller-api"
    );
    let ports = spec["podMetricsEndpoints"].as_array().unwrap().iter();
    assert_eq!(
        ports
            .map(|endpoint| endpoint["port"].as_str().unwrap())
            .collect::<BTreeSet<_>>(),
        watched
    );
}

#[test]
fn network_policies_allow_pods_to_reach_the_collector() {
    let config = text("kubernetes/config.yaml");
    let mut lines = config.lines().map(str::trim);
    let endpoint = lines.find_map(|line| line.strip_prefix("# otlp_endpoint = "));
    let endpoint = url::Url::parse(endpoint.unwrap().trim_matches('"')).unwrap();
    let namespace = endpoint.host_str().unwrap().split('.').nth(1).unwrap();
    let every_pod = json!({"app.kubernetes.io/name": "seller-api"});
    let policies = of_kind("NetworkPolicy");
    let of_all = policies
        .iter()
        .filter(|policy| policy["spec"]["podSelector"]["matchLabels"] == every_pod);
    let mut rules = of_all.flat_map(|policy| policy["spec"]["egress"].as_array().unwrap());
    let leads_there = |rule: &Value| {
        let to = &rule["to"][0]["namespaceSelector"]["matchLabels"];
        let named = to
            .as_object()
            .is_some_and(|labels| labels.values().any(|name| name == namespace));
        named && rule["ports"][0]["port"] == json!(endpoint.port())
    };
    assert!(rules.any(leads_there), "{endpoint}");
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
fn all_objects_share_a_namespace_and_selectors_match_labels() {
    let workloads = workloads();
    for object in objects() {
        assert_eq!(object["metadata"]["namespace"], "seller-api", "{object}");
        let spec = &object["spec"];
        let selectors = [
            &spec["selector"]["matchLabels"],
            &spec["podSelector"]["matchLabels"],
            &spec["selector"],
        ];
        let selector = selectors.into_iter().find_map(Value::as_object);
        let fits = |workload: &Value| {
            let labels = &workload["spec"]["template"]["metadata"]["labels"];
            selector
                .into_iter()
                .flatten()
                .all(|(name, value)| labels[name] == *value)
        };
        assert!(workloads.iter().any(fits), "{object} selects nothing");
    }
}

#[test]
fn pods_are_locked_down_and_given_time_to_stop() {
    let stop = stop(&effective()).as_secs();
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

#[test]
fn ports_are_the_ones_listened_on() {
    let (config, policies, mut names) = (effective(), of_kind("NetworkPolicy"), BTreeSet::new());
    for deployment in of_kind("Deployment") {
        let listened = listened(&deployment, &config);
        let container = container(&deployment);
        let told = listened
            .iter()
            .map(|(name, port)| json!({"name": name, "containerPort": port}));
        assert_eq!(container["ports"], told.collect::<Value>());
        for probe in PROBES {
            assert_eq!(
                container[probe]["httpGet"]["port"],
                watched(&deployment),
                "{probe}"
            );
        }
        let name = &deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"];
        let policy = policies
            .iter()
            .find(|policy| policy["metadata"]["name"] == *name)
            .unwrap();
        let admitted = policy["spec"]["ingress"].as_array().unwrap().iter();
        let admitted: Value = admitted.map(|rule| rule["ports"][0]["port"].clone()).collect();
        assert_eq!(
            admitted,
            listened.iter().map(|(_, port)| *port).collect::<Value>()
        );
        names.extend(listened.into_iter().map(|(name, _)| name));
    }
    for service in of_kind("Service") {
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(names.contains(port["targetPort"].as_str().unwrap()), "{port}");
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

#[test]
fn a_disruption_takes_one_pod_at_a_time() {
    let (deployments, budgets) = (of_kind("Deployment"), of_kind("PodDisruptionBudget"));
    assert_eq!(budgets.len(), deployments.len());
    for deployment in deployments {
        assert!(deployment["spec"]["replicas"].as_i64().unwrap() >= 2);
        let of = |budget: &&Value| budget["spec"]["selector"] == deployment["spec"]["selector"];
        let budget = budgets.iter().find(of).expect("a budget for each");
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
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
