//! Notifications to systemd, received on a socket in its place.

use std::{path::Path, time::Duration};

use testkit::{ServerOptions, TestDatabase};
use tokio::{net::UnixDatagram, time::timeout};

use crate::PROGRAM;

/// Maximum wait for an expected message.
const PATIENCE: Duration = Duration::from_secs(30);

/// The socket in systemd's place.
struct Supervisor(UnixDatagram);

impl Supervisor {
    fn at(path: &Path) -> Self {
        Self(UnixDatagram::bind(path).unwrap())
    }

    /// Waits for the next message that contains these words; drops those before it.
    async fn receives(&self, words: &str) -> String {
        let mut buffer = [0; 4_096];
        let mut heard = String::new();
        let received = timeout(PATIENCE, async {
            loop {
                let length = self.0.recv(&mut buffer).await.unwrap();
                let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
                if message.contains(words) {
                    return message;
                }
                heard.push_str(&message);
            }
        });
        received
            .await
            .unwrap_or_else(|_| panic!("{words} is not received, but {heard}"))
    }
}

#[tokio::test]
async fn start_waiting_watchdog_readiness_and_stop_are_notified_and_waiting_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let supervisor = Supervisor::at(&path);
    let database = TestDatabase::create().await;
    database.block_connections().await;
    let options = ServerOptions::new(PROGRAM)
        .set("NOTIFY_SOCKET", path.display())
        .set("WATCHDOG_USEC", 1_000_000)
        .set("SELLER_API__SERVER__SHUTDOWN_TIMEOUT", "7s");
    let server = blackbox::listen(&options, database.url()).await;
    supervisor.receives("READY=1\n").await;
    let waiting = "STATUS=waiting: the database cannot be reached\n";
    supervisor.receives(waiting).await;
    // Longer than three checks of the database, which run once a second.
    for _ in 0..8 {
        supervisor.receives("WATCHDOG=1\n").await;
    }
    database.allow_connections().await;
    supervisor.receives("STATUS=ready\n").await;
    let log = server.log_with(|log| log.contains("\"ready\"")).await;
    assert_eq!(log.matches("not ready: waiting").count(), 1, "{log}");
    server.terminate();
    let stop = supervisor.receives("STOPPING=1\n").await;
    assert!(stop.contains("EXTEND_TIMEOUT_USEC=12000000\n"), "{stop}");
    assert_eq!(server.exit_code().await, Some(0));
}
