//! Three generated clients, one per language. Each makes a complete trade in a separate sandbox.

use std::path::{Path, PathBuf};

use blackbox::Sandbox;
use serde_json::json;
use tempfile::TempDir;
use testkit::Client;

use crate::PROGRAM;
use crate::tools::{committed, installed, of_machine, of_node, of_python, run};

/// A sandbox, and its data for a client.
struct Market {
    folder: TempDir,
    _sandbox: Sandbox,
    /// The document that the sandbox serves.
    document: PathBuf,
    /// The API's URL, and an application of the first seller.
    asked: String,
}

impl Market {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
        let base = sandbox.text("base_url");
        let served = Client::new().get(&format!("{base}/openapi.json")).send().await;
        let document = folder.path().join("openapi.json");
        std::fs::write(&document, &served.bytes).unwrap();
        let application = &sandbox.credentials["sellers"][0]["applications"][0];
        let asked = json!({
            "base_url": base,
            "client_id": application["client_id"],
            "client_secret": application["client_secret"],
        });
        Self {
            asked: format!("{asked}\n"),
            _sandbox: sandbox,
            folder,
            document,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Copies the committed files of a folder.
fn copy(from: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(committed(from)).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
}

#[tokio::test]
async fn a_generated_typescript_client_trades() {
    let (Some(mut generator), Some(mut compiler), Some(mut node)) =
        (of_node("openapi-typescript"), of_node("tsc"), of_machine("node"))
    else {
        return;
    };
    let market = Market::open().await;
    // Node looks for modules beside the file that imports them.
    let folder = tempfile::tempdir_in(installed().join("node")).unwrap();
    copy("typescript", folder.path());
    generator
        .arg(&market.document)
        .arg("--output")
        .arg(folder.path().join("schema.d.ts"));
    run(&mut generator, "").await;
    run(compiler.arg("--project").arg(folder.path()), "").await;
    let said = run(node.arg(folder.path().join("out/trade.js")), &market.asked).await;
    assert_eq!(said, "traded\n");
}

#[tokio::test]
async fn a_generated_python_client_trades() {
    let (Some(mut generator), Some(mut checker), Some(mut python)) = (
        of_python("openapi-python-client"),
        of_python("mypy"),
        of_python("python"),
    ) else {
        return;
    };
    let market = Market::open().await;
    generator
        .args(["generate", "--meta", "none", "--fail-on-warning", "--path"])
        .arg(&market.document)
        .arg("--config")
        .arg(committed("python/generator.yaml"))
        .arg("--output-path")
        .arg(market.path("seller_api_client"));
    run(&mut generator, "").await;
    let program = committed("python/trade.py");
    checker
        .args(["--strict", "--follow-imports", "silent", "--cache-dir"])
        .arg(market.path("checked"))
        .arg(&program)
        .env("MYPYPATH", market.folder.path());
    run(&mut checker, "").await;
    python.arg(&program).env("PYTHONPATH", market.folder.path());
    let said = run(&mut python, &market.asked).await;
    assert_eq!(said, "traded\n");
}

#[tokio::test]
async fn a_generated_rust_client_trades() {
    let (Some(mut generator), Some(_), Some(mut cargo)) = (
        of_python("openapi-generator-cli"),
        of_machine("java"),
        of_machine("cargo"),
    ) else {
        return;
    };
    let market = Market::open().await;
    // Always the same folder, so that unchanged crates are not built again.
    let folder = installed().join("rust");
    copy("rust", &folder);
    copy("rust/src", &folder.join("src"));
    drop(std::fs::remove_dir_all(folder.join("client")));
    generator
        .arg("generate")
        .arg("--config")
        .arg(committed("rust/generator.yaml"))
        .arg("--input-spec")
        .arg(&market.document)
        .arg("--output")
        .arg(folder.join("client"));
    run(&mut generator, "").await;
    cargo
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", folder.join("target"));
    let said = run(&mut cargo, &market.asked).await;
    assert_eq!(said, "traded\n");
}
