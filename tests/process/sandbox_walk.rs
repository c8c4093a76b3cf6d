//! The README's walk through the code flow works as it stands there, with `curl` as the browser.

use std::{io::Write as _, path::Path};

use blackbox::Sandbox;
use rustix::process::Signal;
use tokio::process::Command;

use crate::PROGRAM;

const TOOLS: [&str; 4] = ["bash", "curl", "jq", "openssl"];
const HEADING: &str = "\n## A seller lets a program in\n";

/// The shell commands of the section, in their order.
fn commands() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let (_, section) = text.split_once(HEADING).expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

fn is_installed(tool: &&str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

#[tokio::test]
async fn the_code_flow_of_the_readme_can_be_copied() {
    if !TOOLS.iter().all(is_installed) {
        let missing = format!("one of {TOOLS:?} is not installed");
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        drop(writeln!(std::io::stderr(), "\n!!! SKIPPED: {missing}\n"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join(".sandbox"), &[], &[]).await;
    let first = "set -e\napi=$(jq -r .base_url .sandbox/credentials.json)\n";
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("{first}{}", commands()));
    let walked = shell
        .current_dir(folder.path())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&walked.stdout),
        String::from_utf8_lossy(&walked.stderr),
    );
    assert!(walked.status.success(), "{said}{complained}");
    assert!(
        said.contains("https://parcel-bridge.example/oauth/callback?code="),
        "{said}"
    );
    assert_eq!(
        said.matches("\"scope\": \"offers:read orders:read\"").count(),
        2,
        "{said}"
    );
    assert!(
        said.contains("\"name\": \"Parcel Bridge\"") && said.trim_end().ends_with("200"),
        "{said}"
    );
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
}
