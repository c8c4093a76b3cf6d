//! Tests of certificate files: valid ones, refused ones, and replacement.

use std::fs;

use kernel::MockClock;
use metrics_exporter_prometheus::PrometheusBuilder;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

/// A certificate for these years and its key, in PEM.
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

async fn loaded(folder: &Path, certificate: &str, key: &str) -> Certificate {
    let mut clock = MockClock::new();
    clock.expect_now().returning(|| in_year(2026));
    let clock: Arc<dyn Clock> = Arc::new(clock);
    let files = written(folder, certificate, key);
    Certificate::load("api", files, &clock).await.unwrap()
}

#[tokio::test]
async fn a_certificate_is_judged_by_its_time() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let pair = written(folder.path(), &certificate, &key).read().await.unwrap();
    let (from, to) = validity_period(&pair.cert).unwrap();
    assert_eq!(to.unwrap().to_rfc3339(), "2030-01-01T00:00:00+00:00");
    for (year, expected) in [
        (2010, Validity::NotYet),
        (2025, Validity::Valid),
        (2035, Validity::Expired),
    ] {
        assert_eq!(validity(from, to, in_year(year)), expected, "{year}");
    }
    assert_eq!(validity(from, None, in_year(9000)), Validity::Valid);
    assert_eq!(validity_period(&[]), None);
}

#[test]
fn a_coming_end_is_warned_of_once_a_day_from_fourteen_days_before_on() {
    let (from, end) = (in_year(2020), in_year(2030));
    let (mut warned, mut warnings) = (None, Vec::new());
    for hours in (-24..24 * 20).rev() {
        let now = end - TimeDelta::hours(hours);
        let validity = validity(from, Some(end), now);
        if should_warn(validity, now, &mut warned) {
            warnings.push((hours, validity));
        }
    }
    let before = (0..=14).rev().map(|day| (day * 24, Validity::EndsSoon));
    let expected = before.chain([-1, -24].map(|hours| (hours, Validity::Expired)));
    assert_eq!(warnings, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_end_of_a_certificate_and_unusable_files_are_measured() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let mut served = loaded(folder.path(), &certificate, &key).await;
    served.reload(false).await;
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
        served.reload(false).await;
        let count = format!("tls_reload_failures_total{{listener=\"api\"}} {failures}\n");
        assert!(measured().contains(&count), "{}", measured());
        assert!(measured().contains(end), "{}", measured());
    }
    written(folder.path(), &longer, &its_key);
    for _ in 0..2 {
        served.reload(false).await;
        let later = "tls_certificate_expiry_time_seconds{listener=\"api\"} 1924992000\n";
        assert!(measured().contains(later), "{}", measured());
        assert!(
            measured().contains("tls_reload_failures_total{listener=\"api\"} 3\n"),
            "{}",
            measured()
        );
    }
}
