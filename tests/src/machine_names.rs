//! Gives one process a different system resolver: a test's name server instead of the machine's.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use testkit::{ServerOptions, may_lack_mounts, mounts_are_refused, report_skipped};

use crate::NameServer;

/// Runs before the program in a separate mount namespace: mounts the folder's files over those that the C
/// library's resolver reads.
const SCRIPT: &str = "set -e
for file in resolv.conf nsswitch.conf hosts; do mount --bind \"$0/$file\" \"/etc/$file\"; done
exec \"$@\"";

/// A name server and the resolver files that point to it.
#[derive(Debug)]
pub struct MachineNames {
    /// The name server that the process queries.
    pub server: NameServer,
    folder: TempDir,
}

impl MachineNames {
    /// Starts a name server that knows these names; files define no names, not even `localhost`. Requires
    /// root, a free port and mounts. `None` without them, after a message; if the test may not be skipped
    /// ([`may_lack_mounts`]), it fails.
    pub async fn start(names: &[(&str, &[Ipv4Addr])]) -> Option<Self> {
        let server = if mounts_are_refused() {
            None
        } else {
            NameServer::at_the_usual_port(names).await
        };
        let machine = server.map(Self::over).filter(Self::is_seen);
        if machine.is_none() {
            assert!(
                may_lack_mounts(),
                "the machine's name server cannot be replaced, and nothing is skipped here"
            );
            report_skipped("only root, where it may mount, can give a process another name server");
        }
        machine
    }

    fn over(server: NameServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // The program may later run under another account.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("the folder is opened");
        let nameserver = format!("nameserver {}\n", server.address.ip());
        for (file, text) in [
            ("resolv.conf", nameserver.as_str()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
            ("hosts", ""),
        ] {
            fs::write(folder.path().join(file), text).expect("the file is written");
        }
        Self { server, folder }
    }

    /// Whether a process can see these files.
    fn is_seen(&self) -> bool {
        let [unshare, words @ ..] = self.words();
        let mut probe = Command::new(unshare);
        probe.args(words).arg("true").stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }

    /// The words before a program on the command line that make the process see these names.
    pub fn words(&self) -> [&str; 8] {
        let folder = self.folder.path().to_str().expect("a path in UTF-8");
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            SCRIPT,
            folder,
        ]
    }

    /// Options under which the program sees these names.
    pub fn given_to(&self, options: ServerOptions) -> ServerOptions {
        options.by(&self.words())
    }
}
