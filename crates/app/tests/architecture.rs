//! The allowed dependencies between crates of the workspace, and crates that the domain must not use.
//! `deny.toml` bans crates everywhere.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{CargoOpt, DepKindInfo, DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// From the inside out: a crate may use only crates of inner layers, never of its own layer or an outer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Kernel,
    Domain,
    UseCases,
    /// The HTTP kernel, on which every listener is built.
    Web,
    Adapter,
    App,
    /// Tests and benchmarks, which no part of the product uses.
    Development,
}

/// Crates that must not occur in a domain crate's dependency tree.
const IMPURE: &str = "tokio actix-web diesel diesel-async tokio-postgres reqwest hyper rustls tracing web";

struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    fn read() -> Self {
        let mut command = MetadataCommand::new();
        command
            .features(CargoOpt::AllFeatures)
            .other_options(["--locked".to_owned()]);
        Self {
            metadata: command.exec().unwrap(),
        }
    }

    /// Each workspace crate with its dependencies in the workspace.
    fn dependencies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let packages = self.metadata.workspace_packages();
        let is_ours = |name: &String| packages.iter().any(|package| *package.name == *name);
        let entry = |package: &&Package| {
            let used = package.dependencies.iter();
            let used = used.filter(|used| used.kind != DependencyKind::Development);
            let names = used.map(|used| used.name.clone()).filter(is_ours);
            (package.name.to_string(), names.collect())
        };
        packages.iter().map(entry).collect()
    }

    fn package(&self, name: &str) -> &Package {
        let packages = self.metadata.workspace_packages();
        packages
            .into_iter()
            .find(|package| *package.name == name)
            .unwrap()
    }

    /// The folder of a workspace crate below `crates`.
    fn folder(&self, name: &str) -> String {
        let folder = self.package(name).manifest_path.parent().unwrap();
        let folder = folder.strip_prefix(&self.metadata.workspace_root).unwrap();
        folder.to_string().replacen("crates/", "", 1)
    }

    /// `None` for a crate that every layer may use; it must not use inner parts of the product, which is also
    /// checked.
    fn layer(&self, name: &str) -> Option<Layer> {
        match self.folder(name).as_str() {
            "domain/kernel" => Some(Layer::Kernel),
            folder if folder.starts_with("domain/") => Some(Layer::Domain),
            "usecases" => Some(Layer::UseCases),
            folder if folder.starts_with("adapters/") => Some(Layer::Adapter),
            "app" => Some(Layer::App),
            "testkit" | "bench" | "fuzz" | "tests" => Some(Layer::Development),
            "web" => Some(Layer::Web),
            "outgoing-tls" | "private-postgres" => None,
            other => panic!("{other} has no layer: add it here"),
        }
    }

    /// All dependencies of a crate, without those for tests.
    fn tree(&self, name: &str) -> BTreeSet<String> {
        let resolve = self.metadata.resolve.as_ref().unwrap();
        let nodes = resolve.nodes.iter().map(|node| (&node.id, node));
        let nodes = nodes.collect::<BTreeMap<_, _>>();
        let is_development = |kind: &DepKindInfo| kind.kind == DependencyKind::Development;
        let (mut seen, mut next) = (BTreeSet::<&PackageId>::new(), vec![&self.package(name).id]);
        while let Some(id) = next.pop() {
            let used = nodes[id].deps.iter();
            let used = used.filter(|used| !used.dep_kinds.iter().all(is_development));
            next.extend(used.map(|used| &used.pkg).filter(|id| seen.insert(id)));
        }
        let names = seen.into_iter().map(|id| self.metadata[id].name.to_string());
        names.collect()
    }
}

#[test]
fn dependencies_point_inwards() {
    let workspace = Workspace::read();
    let dependencies = workspace.dependencies();
    assert!(dependencies["seller-api"].contains("adapter-postgres"));
    assert!(dependencies["usecases"].contains("kernel"));
    for (name, used) in dependencies {
        let layer = workspace.layer(&name);
        for other in used {
            let is_allowed = match (layer, workspace.layer(&other)) {
                // Domain crates may depend on each other; Cargo rejects cycles.
                (Some(Layer::Domain), Some(Layer::Domain)) | (Some(Layer::Development), _) => true,
                (Some(outer), Some(inner)) => outer > inner,
                (Some(layer), None) => layer >= Layer::Adapter,
                (None, Some(inner)) => inner == Layer::Kernel,
                (None, None) => false,
            };
            assert!(is_allowed, "{name} must not depend on {other}");
        }
    }
}

#[test]
fn the_domain_is_pure() {
    let workspace = Workspace::read();
    let is_inner = |name: &String| {
        workspace
            .layer(name)
            .is_some_and(|layer| layer <= Layer::UseCases)
    };
    let names = workspace.dependencies().into_keys().filter(is_inner);
    let names = names.collect::<Vec<_>>();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        let tree = workspace.tree(&name);
        let impure = IMPURE.split(' ').find(|banned| tree.contains(*banned));
        assert_eq!(impure, None, "in the dependencies of {name}");
    }
}

#[test]
fn the_files_that_contributors_are_led_to_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(root.join(".github/CONTRIBUTING.md")).unwrap();
    let names = page.split('`').skip(1).step_by(2);
    for name in names.filter(|name| name.starts_with("crates/") && !name.contains('*')) {
        assert!(root.join(name).exists(), "{name}");
    }
}
