//! Runs the guide's example receivers as printed.

use std::path::Path;
use std::process::{Command as Probe, Stdio};

use blackbox::{World, eventually, free_port, local_receivers, on_path, signature, skipped};
use testkit::Client;
use tokio::{net::TcpStream, process::Command};

use crate::PROGRAM;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/webhooks.md");

/// Languages of the guide: the tag of the code block, the file's name, and the program that runs it.
const LANGUAGES: [[&str; 3]; 5] = [
    ["python", "receiver.py", "python3"],
    ["javascript", "receiver.mjs", "node"],
    ["go", "receiver.go", "go"],
    ["php", "receiver.php", "php"],
    ["ruby", "receiver.rb", "ruby"],
];

struct Language {
    mark: &'static str,
    file: &'static str,
    program: &'static str,
}

impl Language {
    /// The guide's code block in this language.
    fn code(&self, guide: &str) -> String {
        let begin = format!("```{}\n", self.mark);
        let mut blocks = guide.split(&begin).skip(1);
        let block = blocks
            .next()
            .unwrap_or_else(|| panic!("no {} in the guide", self.mark));
        assert!(blocks.next().is_none(), "one block of {}", self.mark);
        block.split("```").next().unwrap().to_owned()
    }

    /// Stores the receiver in the folder, and compiles it where its language needs that.
    fn prepare(&self, folder: &Path, guide: &str) {
        std::fs::write(folder.join(self.file), self.code(guide)).unwrap();
        if self.mark == "go" {
            // `go run` would leave the program behind when it is killed.
            let mut build = Probe::new(self.program);
            build.args(["build", "-o", "receiver", self.file]);
            assert!(build.current_dir(folder).status().unwrap().success());
        }
    }

    /// What runs the receiver in its folder.
    fn command(&self, folder: &Path, port: u16) -> Command {
        if self.mark == "go" {
            return Command::new(folder.join("receiver"));
        }
        let mut command = Command::new(self.program);
        if self.mark == "php" {
            command.arg("-S").arg(format!("127.0.0.1:{port}"));
        }
        command.arg(self.file);
        command
    }

    /// Runs the receiver and sends it one real and two forged deliveries.
    async fn is_proved(&self, world: &World, folder: &Path, guide: &str) {
        self.prepare(folder, guide);
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}/");
        let own = world.integration().await;
        let made = world.subscription(&own.token, &url, &["order.created"]).await;
        let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
        let output = folder.join(format!("{}.log", self.mark));
        let file = std::fs::File::create(&output).unwrap();
        let _receiver = self
            .command(folder, port)
            .current_dir(folder)
            .env("WEBHOOK_SECRET", secret)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually(&format!("a receiver in {}", self.mark), async || {
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        let order = world.any_order(&own.seller).await;
        let delivery = world.attempted(&own.token, id, 1).await;
        assert_eq!(delivery["response_status"], 204, "{}: {delivery}", self.mark);
        let printed = std::fs::read_to_string(&output).unwrap();
        assert!(printed.contains(delivery["id"].as_str().unwrap()), "{printed}");
        assert!(printed.contains(&order.id), "{printed}");

        let forged = br#"{"id":"1","event":"order.paid"}"#;
        let wrong = signature("ps_wh_another", forged).await;
        let right = signature(secret, forged).await;
        for (signature, status) in [
            (None, 401),
            (Some("sha256="), 401),
            (Some(wrong.as_str()), 401),
            (Some(&right), 204),
        ] {
            let mut request = Client::new()
                .post(&url)
                .body(forged.as_slice())
                .header("x-delivery-id", "1");
            if let Some(signature) = signature {
                request = request.header("x-signature", signature);
            }
            let answer = request.send().await;
            assert_eq!(answer.status, status, "{} for {signature:?}", self.mark);
        }
    }
}

#[tokio::test]
async fn each_receiver_takes_what_is_genuine_and_nothing_else() {
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let world = World::with(PROGRAM, local_receivers).await;
    let folder = tempfile::tempdir().unwrap();
    for [mark, file, program] in LANGUAGES {
        let language = Language { mark, file, program };
        if on_path(program).is_some() {
            language.is_proved(&world, folder.path(), &guide).await;
        } else {
            language.code(&guide);
            skipped(&format!(
                "{program} is not installed, its receiver in the guide is not run"
            ));
        }
    }
}
