//! The manifests for Kubernetes.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use seller_api::config::Config;
use testkit::TestDatabase;
use yaml_rust2::{Yaml, YamlLoader};

use crate::{
    PROGRAM,
    configured::{ConfigFile, stop, variables},
    image, operations,
    started::{Started, ends_well},
    text,
    tools::{of_python, run},
};

const FILES: [&str; 5] = ["config", "network", "migrate", "api", "worker"];

/// Every object of every file.
fn objects() -> Vec<Yaml> {
    let load = |file: &&str| YamlLoader::load_from_str(&text(&format!("kubernetes/{file}.yaml"))).unwrap();
    FILES.iter().flat_map(load).collect()
}

fn of_kind(kind: &str) -> Vec<Yaml> {
    let mut objects = objects();
    objects.retain(|object| object["kind"].as_str() == Some(kind));
    assert!(!objects.is_empty(), "{kind}");
    objects
}

/// What runs: the deployments and the job.
fn workloads() -> Vec<Yaml> {
    [of_kind("Deployment"), of_kind("Job")].concat()
}

fn container(workload: &Yaml) -> &Yaml {
    let containers = &workload["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_vec().unwrap().len(), 1);
    &containers[0]
}

fn words(workload: &Yaml) -> Vec<String> {
    let args = container(workload)["args"].as_vec().unwrap();
    args.iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

fn labels(object: &Yaml) -> BTreeMap<String, String> {
    let labels = object.as_hash().into_iter().flatten();
    let text = |yaml: &Yaml| yaml.as_str().unwrap().to_owned();
    labels.map(|(name, value)| (text(name), text(value))).collect()
}

fn config() -> ConfigFile {
    ConfigFile::of(of_kind("ConfigMap")[0]["data"]["config.toml"].as_str().unwrap())
}

fn effective() -> Config {
    config().with(&image::environment())
}

/// The ports of a workload's container, by name, as the configuration has them.
fn listened(command: &str, config: &Config) -> BTreeMap<&'static str, u16> {
    match command {
        "serve" => BTreeMap::from([
            ("api", config.server.bind.port()),
            ("backoffice", config.server.backoffice_bind.port()),
        ]),
        "worker" => BTreeMap::from([("probes", config.worker.bind.port())]),
        _ => BTreeMap::new(),
    }
}

/// The port at which a process is watched.
fn management(command: &str) -> &'static str {
    if command == "serve" {
        "backoffice"
    } else {
        "probes"
    }
}

/// The ports at which processes are watched, of all deployments.
fn watched() -> BTreeSet<String> {
    let deployments = of_kind("Deployment");
    let ports = deployments
        .iter()
        .map(|deployment| management(&words(deployment)[0]));
    ports.map(str::to_owned).collect()
}

#[test]
fn metrics_are_collected_of_every_pod_as_the_job_of_the_alert_rules() {
    for deployment in of_kind("Deployment") {
        let pod = &deployment["spec"]["template"]["metadata"];
        assert_eq!(
            pod["labels"]["app.kubernetes.io/name"].as_str(),
            Some("seller-api")
        );
        assert!(
            pod["annotations"].is_badvalue(),
            "what collects by annotations calls the job otherwise"
        );
    }
    let load = |file: &str| YamlLoader::load_from_str(&text(file)).unwrap().remove(0);
    let scraped = load("prometheus/kubernetes.yml")["scrape_configs"][0].clone();
    let found = &scraped["kubernetes_sd_configs"][0];
    assert_eq!(found["namespaces"]["names"][0].as_str(), Some("seller-api"));
    assert_eq!(
        found["selectors"][0]["label"].as_str(),
        Some("app.kubernetes.io/name=seller-api")
    );
    let kept = scraped["relabel_configs"][0]["regex"]
        .as_str()
        .unwrap()
        .split('|');
    assert_eq!(kept.map(str::to_owned).collect::<BTreeSet<_>>(), watched());
    let monitor = load("prometheus/pod-monitor.yaml");
    assert_eq!(monitor["metadata"]["namespace"].as_str(), Some("seller-api"));
    let spec = &monitor["spec"];
    assert_eq!(spec["jobLabel"].as_str(), Some("app.kubernetes.io/name"));
    assert_eq!(
        labels(&spec["selector"]["matchLabels"])["app.kubernetes.io/name"],
        "seller-api"
    );
    let ports = spec["podMetricsEndpoints"].as_vec().unwrap().iter();
    let ports = ports.map(|endpoint| endpoint["port"].as_str().unwrap().to_owned());
    assert_eq!(ports.collect::<BTreeSet<_>>(), watched());
}

#[test]
fn every_pod_is_let_out_to_the_collector_that_the_configuration_could_name() {
    let config = text("kubernetes/config.yaml");
    let endpoint = config
        .lines()
        .find_map(|line| line.trim().strip_prefix("# otlp_endpoint = "));
    let endpoint = url::Url::parse(endpoint.unwrap().trim_matches('"')).unwrap();
    let namespace = endpoint.host_str().unwrap().split('.').nth(1).unwrap();
    let policies = of_kind("NetworkPolicy");
    let mut rules = policies
        .iter()
        .filter(|policy| {
            labels(&policy["spec"]["podSelector"]["matchLabels"])
                == BTreeMap::from([("app.kubernetes.io/name".to_owned(), "seller-api".to_owned())])
        })
        .flat_map(|policy| policy["spec"]["egress"].as_vec().unwrap());
    let leads_there = |rule: &Yaml| {
        let to = &rule["to"][0]["namespaceSelector"]["matchLabels"];
        labels(to).values().any(|name| name == namespace)
            && rule["ports"][0]["port"].as_i64() == endpoint.port().map(i64::from)
    };
    assert!(rules.any(leads_there), "{endpoint}");
}

#[test]
fn the_schemas_of_kubernetes_admit_them() {
    assert_eq!(operations("kubernetes").read_dir().unwrap().count(), FILES.len());
    for file in FILES {
        let Some(mut validate) = of_python("kubernetes-validate") else {
            return;
        };
        run(validate
            .args(["--strict", "--quiet"])
            .arg(operations(&format!("kubernetes/{file}.yaml"))));
    }
}

#[test]
fn everything_lies_in_one_namespace_and_is_selected_by_labels_that_are_there() {
    let objects = objects();
    let pods: Vec<_> = workloads()
        .iter()
        .map(|workload| labels(&workload["spec"]["template"]["metadata"]["labels"]))
        .collect();
    for object in &objects {
        assert_eq!(
            object["metadata"]["namespace"].as_str(),
            Some("seller-api"),
            "{object:?}"
        );
        let spec = &object["spec"];
        let service = object["kind"].as_str() == Some("Service");
        let selector = match &spec["selector"]["matchLabels"] {
            Yaml::BadValue if service => labels(&spec["selector"]),
            Yaml::BadValue => labels(&spec["podSelector"]["matchLabels"]),
            matched => labels(matched),
        };
        let fits = |pod: &&BTreeMap<String, String>| {
            selector.iter().all(|(name, value)| pod.get(name) == Some(value))
        };
        assert!(pods.iter().any(|pod| fits(&pod)), "{object:?} selects nothing");
    }
}

#[test]
fn pods_are_locked_down_and_given_time_to_stop() {
    let stop = i64::try_from(stop(&effective()).as_secs()).unwrap();
    for workload in workloads() {
        let pod = &workload["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false));
        assert_eq!(pod["securityContext"]["runAsNonRoot"].as_bool(), Some(true));
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"].as_str(),
            Some("RuntimeDefault")
        );
        let container = container(&workload);
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"].as_bool(), Some(false));
        assert_eq!(security["readOnlyRootFilesystem"].as_bool(), Some(true));
        assert_eq!(security["capabilities"]["drop"][0].as_str(), Some("ALL"));
        let resources = &container["resources"];
        assert!(
            resources["requests"]["cpu"].as_str().is_some()
                && resources["limits"]["memory"].as_str().is_some()
        );
        if workload["kind"].as_str() == Some("Deployment") {
            assert!(pod["terminationGracePeriodSeconds"].as_i64().unwrap() >= stop + 5);
        }
    }
}

#[test]
fn ports_are_those_that_are_listened_on() {
    let config = effective();
    for deployment in of_kind("Deployment") {
        let words = words(&deployment);
        let listened = listened(&words[0], &config);
        let container = container(&deployment);
        let told: BTreeMap<_, _> = container["ports"]
            .as_vec()
            .unwrap()
            .iter()
            .map(|port| {
                (
                    port["name"].as_str().unwrap(),
                    port["containerPort"].as_i64().unwrap(),
                )
            })
            .collect();
        let wanted: BTreeMap<_, _> = listened
            .iter()
            .map(|(name, port)| (*name, i64::from(*port)))
            .collect();
        assert_eq!(told, wanted);
        let management = management(&words[0]);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(
                container[probe]["httpGet"]["port"].as_str(),
                Some(management),
                "{probe}"
            );
        }
        let policy = of_kind("NetworkPolicy");
        let name = &deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"];
        let policy = policy
            .iter()
            .find(|policy| policy["metadata"]["name"] == *name)
            .unwrap();
        let admitted = policy["spec"]["ingress"].as_vec().unwrap().iter();
        let admitted: Vec<_> = admitted
            .map(|rule| rule["ports"][0]["port"].as_i64().unwrap())
            .collect();
        assert_eq!(admitted, wanted.values().copied().collect::<Vec<_>>());
    }
    for service in of_kind("Service") {
        for port in service["spec"]["ports"].as_vec().unwrap() {
            let target = port["targetPort"].as_str().unwrap();
            assert!(listened("serve", &config).contains_key(target), "{target}");
        }
    }
}

/// Executes what the first lines of the configuration say is done once, with the program itself, and without a cluster; gives the file
/// that the Secret is made of, which nobody else may read and no command line shows.
fn secret() -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let head = text("kubernetes/config.yaml");
    assert!(!head.contains("--from-literal"), "a command line shows it");
    let commands: Vec<_> = head
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .collect();
    let kubectl = "kubectl() { words=\"$*\"; case \"$words\" in *--from-env-file=*) cp --preserve=mode \"${words##*=}\" given;; esac; }";
    let program = format!("seller-api() {{ {PROGRAM} \"$@\"; }}");
    let script = format!("{kubectl}\n{program}\n{}", commands.join("\n"));
    run(Command::new("bash")
        .args(["-eu", "-c", &script])
        .current_dir(folder.path()));
    let given = folder.path().join("given");
    for file in [&given, &folder.path().join("sealing.key")] {
        assert_eq!(
            std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert!(!folder.path().join("secret.env").exists());
    std::fs::read_to_string(given).unwrap()
}

#[test]
fn secrets_come_from_a_secret_and_their_names_are_variables() {
    let (given, known) = (secret(), variables());
    let named: Vec<_> = given.lines().map(|line| line.split_once('=').unwrap()).collect();
    assert_eq!(named.len(), 3);
    for (name, value) in named {
        assert!(known.contains(name) && !value.is_empty(), "{name}");
    }
    let data = of_kind("ConfigMap")[0]["data"].clone();
    for workload in workloads() {
        let container = container(&workload);
        assert_eq!(
            container["envFrom"][0]["secretRef"]["name"].as_str(),
            Some("seller-api")
        );
        assert!(container["env"].is_badvalue());
        let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
        let words = words(&workload);
        let file = words
            .last()
            .unwrap()
            .strip_prefix(mount)
            .unwrap()
            .trim_start_matches('/');
        assert!(!data[file].is_badvalue(), "{file}");
    }
}

#[test]
fn a_disruption_takes_one_pod_at_a_time() {
    let deployments = of_kind("Deployment");
    let budgets = of_kind("PodDisruptionBudget");
    assert_eq!(budgets.len(), deployments.len());
    for deployment in deployments {
        assert!(deployment["spec"]["replicas"].as_i64().unwrap() >= 2);
        let of = |budget: &&Yaml| budget["spec"]["selector"] == deployment["spec"]["selector"];
        let budget = budgets.iter().find(of).expect("a budget for each");
        assert_eq!(budget["spec"]["maxUnavailable"].as_i64(), Some(1));
    }
}

#[tokio::test]
async fn what_the_pods_run_starts_answers_its_probes_and_stops() {
    let config = config();
    let database = TestDatabase::empty().await;
    ends_well(&words(&of_kind("Job")[0]), &config, &database).await;
    for deployment in of_kind("Deployment") {
        let started = Started::with(&words(&deployment), &config, &database).await;
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let path = container(&deployment)[probe]["httpGet"]["path"].as_str().unwrap();
            started.becomes_good(path).await;
        }
        assert_eq!(started.status("/metrics").await, 200);
        started.end().await;
    }
}
