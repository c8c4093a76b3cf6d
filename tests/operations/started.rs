//! Starts the program with the exact arguments of a deployment file.

use std::process::Command;

use blackbox::run;
use testkit::{Client, Process, TestDatabase, sealing_key};

use crate::{PROGRAM, configured::ConfigFile};

/// A running process that listens.
#[derive(Debug)]
pub(crate) struct Started {
    process: Process,
    /// The URL of its probes.
    pub(crate) probes: String,
}

impl Started {
    /// Starts the program with these arguments over a separate database. Only the file's path, the ports and
    /// the secrets differ from the deployment.
    pub(crate) async fn with(words: &[String], file: &ConfigFile, database: &TestDatabase) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments(words, file))
            .env_clear()
            .envs(environment(database, &sealing_key()));
        let mut process = Process::start(&mut command);
        let serves = words.iter().any(|word| word == "serve");
        let listener = if serves { "backoffice" } else { "probes" };
        let [probes] = process.addresses([listener]).await;
        Self { process, probes }
    }

    /// The status of the answer to a GET on this path.
    pub(crate) async fn status(&self, path: &str) -> u16 {
        let url = format!("{}{path}", self.probes);
        Client::new().get(&url).send().await.status
    }

    /// Waits until a path is answered 200.
    pub(crate) async fn becomes_good(&self, path: &str) {
        blackbox::until(path, async || self.status(path).await == 200).await;
    }

    /// Stops it as every service manager does.
    pub(crate) async fn end(self) {
        self.process.terminate();
        assert_eq!(self.process.exit_code().await, Some(0));
    }
}

/// Runs the program with these arguments to its end; asserts success.
pub(crate) async fn ends_well(words: &[String], file: &ConfigFile, database: &TestDatabase) {
    let arguments = arguments(words, file);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let key = sealing_key();
    let environment = environment(database, &key);
    run(PROGRAM, &arguments, &environment).await.success();
}

/// The argument after `--config` is the file's path in the deployment.
fn arguments(words: &[String], file: &ConfigFile) -> Vec<String> {
    let named = words.iter().position(|word| word == "--config");
    let named = named.expect("every process is told of its configuration") + 1;
    let mut words = words.to_vec();
    words[named] = file.path.display().to_string();
    words
}

fn environment<'a>(database: &'a TestDatabase, key: &'a str) -> [(&'a str, &'a str); 7] {
    [
        ("SELLER_API__DATABASE__URL", database.url()),
        ("SELLER_API__DATABASE__DIRECT_URL", database.url()),
        ("SELLER_API__KEYS__SEALING", key),
        ("SELLER_API__SERVER__BIND", "127.0.0.1:0"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0"),
        ("SELLER_API__SERVER__DRAIN", "0s"),
        ("SELLER_API__WORKER__BIND", "127.0.0.1:0"),
    ]
}
