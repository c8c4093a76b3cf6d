//! The sandbox's life: it starts, keeps what it has, ends without leaving anything, and gets over being killed.

use std::{os::unix::fs::PermissionsExt, path::Path, time::Duration};

use blackbox::{Sandbox, run};
use rustix::process::Signal;
use testkit::Client;
use tokio_postgres::NoTls;

use crate::PROGRAM;

/// Processes that work in a folder or name it on their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let told = processes.filter_map(|process| {
        let path = process.path();
        let works_in = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        let line = String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        (works_in || line.contains(&folder)).then_some(line)
    });
    told.collect()
}

/// The process id of the sandbox's PostgreSQL, which may live where its command line does not tell; none while it is down.
async fn postmaster(sandbox: &Sandbox) -> Option<i32> {
    let url = sandbox.credentials["database_url"].as_str().unwrap();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
    tokio::spawn(async move { drop(connection.await) });
    let row = client
        .query_one("select pg_read_file('postmaster.pid')", &[])
        .await
        .ok()?;
    row.get::<_, String>(0).lines().next()?.trim().parse().ok()
}

/// True while the process lives; a zombie does not.
fn lives(process: i32) -> bool {
    std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn personal_token(sandbox: &Sandbox) -> String {
    sandbox.credentials["sellers"][0]["personal_token"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn it_keeps_its_data_ends_cleanly_and_gets_over_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Sandbox::start(PROGRAM, &data, &[], &[]).await;
    let token = personal_token(&first);
    first.get(&token, "/v1/me").await.expect(200);
    let mode = std::fs::metadata(data.join("credentials.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "the credentials are the owner's alone");
    let output = first.output();
    assert!(
        output.contains("curl") && output.contains("ps_pt_"),
        "a call to copy is printed:\n{output}"
    );

    let second = Sandbox::refused(PROGRAM, &data, 1).await;
    assert!(second.stderr.contains("in use"), "{}", second.output());
    first.get(&token, "/v1/me").await.expect(200);

    let postgres = postmaster(&first).await.unwrap();
    assert!(lives(postgres) && !processes_of(&data).is_empty());
    assert_eq!(first.end(Signal::INT).await, Some(0));
    let output = std::fs::read_to_string(data.with_extension("log")).unwrap();
    let (_, end) = output.split_once("SIGINT").expect("it says that it stops");
    assert!(
        !end.contains("WARN") && !end.contains("ERROR"),
        "a clean end alarms:\n{end}"
    );
    assert!(!lives(postgres));
    assert_eq!(processes_of(&data), Vec::<String>::new());

    let again = Sandbox::start(PROGRAM, &data, &[], &[]).await;
    assert_eq!(personal_token(&again), token);
    again.get(&token, "/v1/offers").await.expect(200);
    assert_eq!(again.end(Signal::KILL).await, None);

    let after_a_kill = Sandbox::start(PROGRAM, &data, &[], &[]).await;
    assert_eq!(personal_token(&after_a_kill), token);
    after_a_kill.get(&token, "/v1/offers").await.expect(200);
    let postgres = postmaster(&after_a_kill).await.unwrap();
    assert_eq!(after_a_kill.end(Signal::TERM).await, Some(0));
    assert!(!lives(postgres));
    assert_eq!(processes_of(&data), Vec::<String>::new());
}

#[tokio::test]
async fn its_postgresql_is_started_again_when_it_dies() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join("data"), &[], &[]).await;
    let token = personal_token(&sandbox);
    let postgres = postmaster(&sandbox).await.unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(postgres).unwrap(), Signal::KILL).unwrap();
    let office = sandbox.credentials["backoffice_url"].as_str().unwrap();
    let (client, ready) = (Client::new(), format!("{office}/readyz"));
    let recovered = async {
        while postmaster(&sandbox).await.is_none_or(|now| now == postgres)
            || client.get(&ready).send().await.status != 200
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), recovered)
        .await
        .expect("it recovers by itself");
    sandbox.get(&token, "/v1/offers").await.expect(200);
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
}

#[tokio::test]
async fn fresh_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let before = Sandbox::start(PROGRAM, &data, &[], &[]).await;
    let old = personal_token(&before);
    assert_eq!(before.end(Signal::INT).await, Some(0));
    let fresh = Sandbox::start(PROGRAM, &data, &["--fresh"], &[]).await;
    let new = personal_token(&fresh);
    assert_ne!(new, old);
    fresh.get(&old, "/v1/me").await.expect(401);
    fresh.get(&new, "/v1/me").await.expect(200);
    assert_eq!(fresh.end(Signal::INT).await, Some(0));
    assert_eq!(processes_of(&data), Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_or_port_that_cannot_be_used_is_named_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = file.join("data");
    Sandbox::refused(PROGRAM, &inside, 1).await;

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.path().join("data");
    for ports in [
        ["--port", &port, "--backoffice-port", "0"],
        ["--port", "0", "--backoffice-port", &port],
    ] {
        let arguments = [
            ["sandbox", "--data-dir", data.to_str().unwrap()].as_slice(),
            &ports,
        ]
        .concat();
        let refused = run(PROGRAM, &arguments, &[]).await.failure();
        assert!(refused.stderr.contains(&port), "{}", refused.output());
        assert!(processes_of(&data).is_empty());
    }
}
