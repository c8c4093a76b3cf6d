//! Certificates as files have them: what can be served, what is refused, and how they are replaced.

use std::{fs, path::Path};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::MockClock;
use metrics_exporter_prometheus::PrometheusBuilder;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::{
    pair::PairError,
    reloading::is_to_be_warned_of,
    validity::{Validity, expiry, validity},
    *,
};

/// A certificate for these years, and its key, in PEM.
fn issued(from: i32, to: i32) -> (String, String) {
    let mut params = CertificateParams::new(vec!["api.example".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn written(folder: &Path, certificate: &str, key: &str) -> Files {
    let files = Files {
        section: "server.tls",
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    fs::write(&files.certificate, certificate).unwrap();
    fs::write(&files.key, key).unwrap();
    files
}

fn in_year(year: i32) -> DateTime<Utc> {
    DateTime::from_timestamp(0, 0).unwrap() + TimeDelta::days(i64::from(year - 1970) * 366)
}

fn clock() -> Arc<dyn Clock> {
    let mut clock = MockClock::new();
    clock.expect_now().returning(|| in_year(2026));
    Arc::new(clock)
}

async fn refusal(certificate: &str, key: &str) -> PairError {
    let folder = TempDir::new().unwrap();
    let files = written(folder.path(), certificate, key);
    Pair::of(&files, &files.read().await).unwrap_err()
}

#[tokio::test]
async fn what_cannot_be_served_is_told_by_its_key_and_file() {
    let ((certificate, key), (_, other)) = (issued(2020, 2040), issued(2020, 2040));
    let (certificate, key, other) = (certificate.as_str(), key.as_str(), other.as_str());
    let cut = &certificate[..certificate.len() / 2];
    let cases = [
        ("", key, "`server.tls.certificate`"),
        (cut, key, "`server.tls.certificate`"),
        (key, key, "`server.tls.certificate`"),
        (certificate, "", "`server.tls.key`"),
        (certificate, certificate, "`server.tls.key`"),
        (
            certificate,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "Ed25519",
        ),
        (certificate, other, "is not that of the first certificate"),
    ];
    for (certificate, key, part) in cases {
        let error = refusal(certificate, key).await.to_string();
        assert!(error.contains(part) && error.contains(".pem"), "{part}: {error}");
        assert!(!error.contains("BEGIN PRIVATE"), "{error}");
    }
    let files = Files {
        section: "server.tls",
        certificate: "/nowhere/at/all.pem".into(),
        key: "/nowhere/key.pem".into(),
    };
    let error = Pair::of(&files, &files.read().await).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all.pem"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_judged_by_its_time() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let files = written(folder.path(), &certificate, &key);
    let Pair(pair) = Pair::of(&files, &files.read().await).unwrap();
    for (year, expected) in [
        (2010, Validity::Early),
        (2025, Validity::Fine),
        (2035, Validity::Over),
    ] {
        assert_eq!(validity(&pair.cert, in_year(year)), expected, "{year}");
    }
    let end = expiry(&pair.cert).unwrap();
    assert_eq!(end.to_rfc3339(), "2030-01-01T00:00:00+00:00");
    assert_eq!(expiry(&[]), None);
}

#[test]
fn its_end_is_warned_of_once_a_day_from_fourteen_days_before() {
    let end = in_year(2030);
    let before = |hours| end - TimeDelta::hours(hours);
    let mut warned = None;
    let mut warnings = Vec::new();
    for hours in (-48..24 * 20).rev() {
        if is_to_be_warned_of(end, before(hours), warned) {
            warned = Some(before(hours));
            warnings.push(hours / 24);
        }
    }
    assert_eq!(warnings, (1..=14).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn its_end_and_files_that_cannot_be_used_are_measured() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let files = written(folder.path(), &certificate, &key);
    let read = files.read().await;
    let served = Arc::new(Served::new(Pair::of(&files, &read).unwrap()));
    let mut look = Look::new(files, &read, served, clock());
    let measured = || handle.render();
    let end = "tls_certificate_expiry_time_seconds{listener=\"api\"} 1893456000\n";
    assert!(measured().contains(end), "{}", measured());
    assert!(
        !measured().contains("tls_reload_failures_total"),
        "{}",
        measured()
    );

    let (longer, its_key) = issued(2020, 2031);
    written(folder.path(), &longer, &key);
    for failures in 1..=3 {
        look.again(false).await;
        let count = format!("tls_reload_failures_total{{listener=\"api\"}} {failures}\n");
        assert!(
            measured().contains(&count) && measured().contains(end),
            "{}",
            measured()
        );
    }
    written(folder.path(), &longer, &its_key);
    for _ in 0..2 {
        look.again(false).await;
        let later = "tls_certificate_expiry_time_seconds{listener=\"api\"} 1924992000\n";
        assert!(measured().contains(later), "{}", measured());
        assert!(
            measured().contains("tls_reload_failures_total{listener=\"api\"} 3\n"),
            "{}",
            measured()
        );
    }
}

#[tokio::test]
async fn a_changed_pair_is_served_and_a_broken_one_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2040);
    let files = written(folder.path(), &certificate, &key);
    let read = files.read().await;
    let served = Arc::new(Served::new(Pair::of(&files, &read).unwrap()));
    let first = served.get().cert.clone();
    let mut look = Look::new(files, &read, Arc::clone(&served), clock());
    assert!(!look.again(false).await, "nothing has changed");
    assert!(look.again(true).await, "it was asked for");

    let (other, its_key) = issued(2020, 2040);
    // As when one of the files has been replaced and the other not yet.
    written(folder.path(), &other, &key);
    for asked in [false, false, true] {
        assert!(!look.again(asked).await);
        assert_eq!(served.get().cert, first);
    }
    written(folder.path(), &other, &its_key);
    assert!(look.again(false).await);
    assert_ne!(served.get().cert, first);

    fs::remove_file(folder.path().join("key.pem")).unwrap();
    assert!(!look.again(false).await);
    assert_ne!(served.get().cert, first);
}
