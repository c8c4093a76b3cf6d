//! Which crates of the workspace may depend on which, and what the domain must not use. `deny.toml` bans crates everywhere.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, PackageId};

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
    Workshop,
}

/// Crates that must not occur in a domain crate's dependency tree.
const IMPURE: [&str; 10] = [
    "tokio",
    "actix-web",
    "diesel",
    "diesel-async",
    "tokio-postgres",
    "reqwest",
    "hyper",
    "rustls",
    "tracing",
    "web",
];
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
    fn knows(&self) -> BTreeMap<String, BTreeSet<String>> {
        let ours = self.metadata.workspace_packages();
        let names = ours
            .iter()
            .map(|package| package.name.to_string())
            .collect::<BTreeSet<_>>();
        let known = |package: &&cargo_metadata::Package| {
            let used = package
                .dependencies
                .iter()
                .filter(|used| used.kind != DependencyKind::Development);
            let used = used
                .map(|used| used.name.clone())
                .filter(|name| names.contains(name));
            (package.name.to_string(), used.collect())
        };
        ours.iter().map(known).collect()
    }

    /// The folder of a workspace crate below `crates`.
    fn place(&self, name: &str) -> String {
        let package = self
            .metadata
            .workspace_packages()
            .into_iter()
            .find(|package| *package.name == name)
            .unwrap();
        let folder = package.manifest_path.parent().unwrap();
        folder
            .strip_prefix(&self.metadata.workspace_root)
            .unwrap()
            .to_string()
            .replacen("crates/", "", 1)
    }

    /// `None` for a crate that every layer may use; it must not use inner parts of the product, which is also checked.
    fn layer(&self, name: &str) -> Option<Layer> {
        match self.place(name).as_str() {
            "domain/kernel" => Some(Layer::Kernel),
            place if place.starts_with("domain/") => Some(Layer::Domain),
            "usecases" => Some(Layer::UseCases),
            place if place.starts_with("adapters/") => Some(Layer::Adapter),
            "app" => Some(Layer::App),
            "testkit" | "bench" | "fuzz" | "tests" => Some(Layer::Workshop),
            "web" => Some(Layer::Web),
            "private-postgres" => None,
            other => {
                panic!("{other} has no place in the architecture yet: say here which layer it belongs to")
            }
        }
    }

    /// All dependencies of a crate, without those for tests.
    fn tree(&self, name: &str) -> BTreeSet<String> {
        let resolve = self.metadata.resolve.as_ref().unwrap();
        let nodes = resolve
            .nodes
            .iter()
            .map(|node| (&node.id, node))
            .collect::<BTreeMap<_, _>>();
        let start = self
            .metadata
            .workspace_packages()
            .into_iter()
            .find(|package| *package.name == name)
            .unwrap();
        let (mut seen, mut next) = (BTreeSet::<&PackageId>::new(), vec![&start.id]);
        while let Some(id) = next.pop() {
            let used = nodes[id].deps.iter().filter(|used| {
                used.dep_kinds
                    .iter()
                    .any(|kind| kind.kind != DependencyKind::Development)
            });
            next.extend(used.map(|used| &used.pkg).filter(|id| seen.insert(id)));
        }
        seen.into_iter()
            .map(|id| self.metadata[id].name.to_string())
            .collect()
    }
}

#[test]
fn dependencies_point_inwards() {
    let workspace = Workspace::read();
    for (name, known) in workspace.knows() {
        let layer = workspace.layer(&name);
        for other in known {
            let fine = match (layer, workspace.layer(&other)) {
                // Domain crates may depend on each other; Cargo rejects cycles.
                (Some(Layer::Domain), Some(Layer::Domain)) | (Some(Layer::Workshop), _) => true,
                (Some(outer), Some(inner)) => outer > inner,
                (Some(layer), None) => layer >= Layer::Adapter,
                (None, Some(inner)) => inner == Layer::Kernel,
                (None, None) => false,
            };
            assert!(fine, "{name} must not know {other}");
        }
    }
}

#[test]
fn the_rule_is_not_empty() {
    let known = Workspace::read().knows();
    assert!(known["seller-api"].contains("adapter-postgres"), "{known:?}");
    assert!(known["usecases"].contains("kernel"), "{known:?}");
}

#[test]
fn the_domain_is_pure() {
    let workspace = Workspace::read();
    let inner = |name: &String| {
        workspace
            .layer(name)
            .is_some_and(|layer| layer <= Layer::UseCases)
    };
    let names = workspace.knows().into_keys().filter(inner).collect::<Vec<_>>();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        let tree = workspace.tree(&name);
        let impure = IMPURE
            .iter()
            .filter(|banned| tree.contains(**banned))
            .collect::<Vec<_>>();
        assert!(impure.is_empty(), "{name} is built from {impure:?}");
    }
}
