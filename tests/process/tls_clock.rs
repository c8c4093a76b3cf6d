//! A process's clock is outside the validity of its database's certificate. The process reports that, and
//! recovers with the clock.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use blackbox::{World, own_loopback};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;
use testkit::OwnPostgres;

use crate::clock_steps::{can_step, set_clock, with_clock};
use crate::outage::{connect_every_thread, holds_out};
use crate::starts::reason;
use crate::{PROGRAM, served_by};

const RIGHT: &str = "+0s";
/// Thirty years ahead.
const LATE: &str = "+11000d";
/// Thirty years back.
const EARLY: &str = "-11000d";

/// A self-signed certificate valid from 2020 to 2050, its key, and a process's clock.
struct Files {
    folder: TempDir,
    certificate: String,
    key: String,
}

impl Files {
    fn of(name: &str) -> Self {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2050, 1, 1);
        let key = KeyPair::generate().unwrap();
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        fs::write(files.path("certificate.pem"), &files.certificate).unwrap();
        fs::write(files.path("key.pem"), &files.key).unwrap();
        files.clock(RIGHT);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn clock(&self, step: &str) {
        set_clock(&self.path("clock"), step);
    }
}

/// Writes a file into a server's data folder, with the folder's owner.
fn place(data: &Path, name: &str, content: &str) {
    let (path, owner) = (data.join(name), fs::metadata(data).unwrap());
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test]
async fn a_database_certificate_outside_its_validity_is_logged_and_survived() {
    const NAME: &str = "db.example";
    if !can_step() {
        return;
    }
    let (files, address) = (Files::of(NAME), own_loopback());
    let postgres =
        OwnPostgres::start(|options| options.setting("listen_addresses", address.to_string())).await;
    let data = postgres.cluster().data_folder();
    place(&data, "server.crt", &files.certificate);
    place(&data, "server.key", &files.key);
    place(
        &data,
        "pg_hba.conf",
        "local all all trust\nhostssl all postgres 127.0.0.0/8 trust\n",
    );
    let admin = postgres.database().connect().await;
    for statement in ["alter system set ssl = on", "select pg_reload_conf()"] {
        admin.batch_execute(statement).await.unwrap();
    }
    let mut world = World::over(PROGRAM, postgres.database(), |options| options).await;
    let (seller, token) = world.reader().await;
    let root = files.path("certificate.pem");
    let url = format!(
        "postgres://postgres@{NAME}/postgres?hostaddr={address}&sslmode=verify-full&sslrootcert={}",
        root.display()
    );
    let options = with_clock(world.options.clone(), &files.path("clock"));
    served_by(&mut world, &options, &url).await;
    for (step, wrong) in [
        (LATE, "the server's certificate has expired"),
        (EARLY, "the server's certificate is not valid yet"),
    ] {
        connect_every_thread(&world, &token).await;
        files.clock(step);
        // Open connections keep working.
        world.get(&token, "/v1/offers").await.expect(200);
        let others = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        admin.query(others, &[]).await.unwrap();
        holds_out(&world, &token, &seller.id).await;
        let reason = reason(&world.server).await;
        assert!(reason.contains(wrong) && reason.contains("clock"), "{reason}");
        files.clock(RIGHT);
        world.server.ready().await;
        world.get(&token, "/v1/offers").await.expect(200);
    }
}
