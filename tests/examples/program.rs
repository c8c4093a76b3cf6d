//! Runs an example as a process.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use blackbox::{on_path, skipped};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    TypeScript,
}

fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/examples")
        .join(language)
}

/// The folder in which the compiler is installed.
fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("shipper")
}

impl Language {
    /// Whether the language can run here. Reports it if not, and fails under `CI`.
    pub(crate) fn is_here(self) -> bool {
        let missing = match self {
            Self::Python if on_path("python3").is_none() => "python3 is not installed",
            Self::TypeScript if on_path("node").is_none() => "node is not installed",
            Self::TypeScript if !installed().join("node_modules/typescript").exists() => {
                "the TypeScript compiler is not installed (tests/examples/install does it)"
            }
            _ => return true,
        };
        skipped(missing);
        false
    }

    fn command(self) -> Command {
        match self {
            Self::Python => {
                let mut command = Command::new("python3");
                command
                    .args(["-B", "-m", "shipper"])
                    .current_dir(sources("python"));
                command
            }
            Self::TypeScript => {
                static COMPILED: OnceLock<PathBuf> = OnceLock::new();
                let mut command = Command::new("node");
                command.arg(COMPILED.get_or_init(compiled).join("dist/main.js"));
                command
            }
        }
    }
}

/// The compiled example, beside a copy of its `package.json`, in which Node finds the type of its modules.
fn compiled() -> PathBuf {
    let source = sources("typescript");
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shipper");
    fs::create_dir_all(&into).unwrap();
    fs::copy(source.join("package.json"), into.join("package.json")).unwrap();
    let ended = Command::new("node")
        .arg(installed().join("node_modules/typescript/bin/tsc"))
        .arg("--project")
        .arg(&source)
        .arg("--typeRoots")
        .arg(installed().join("node_modules/@types"))
        .arg("--outDir")
        .arg(into.join("dist"))
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{complaints}");
    into
}

/// An example. Dropping it kills its process.
#[derive(Debug)]
pub(crate) struct Example {
    language: Language,
    environment: Vec<(&'static str, String)>,
    output: PathBuf,
    child: Option<Child>,
}

impl Example {
    /// An example that is not started yet; `folder` keeps its state and its output.
    pub(crate) fn new(
        language: Language,
        folder: &Path,
        mut environment: Vec<(&'static str, String)>,
    ) -> Self {
        environment.push(("STATE", folder.join("state").display().to_string()));
        Self {
            language,
            environment,
            output: folder.join("example.log"),
            child: None,
        }
    }

    /// Starts it with the state of its earlier runs.
    pub(crate) fn start(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let log = OpenOptions::new().create(true).append(true).open(&self.output);
        let log: File = log.unwrap();
        let mut command = self.language.command();
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    /// Kills the process.
    pub(crate) fn crash(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Its output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            drop(writeln!(
                std::io::stderr(),
                "the example printed\n{}",
                self.output()
            ));
        }
    }
}
