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

/// As `openssl x509 -req` makes it.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIHWMIGJAhQ3GaNZ99jeRhvSVHZc6aUnFLuU8TAFBgMrZXAwDTELMAkGA1UEAwwC
djEwIBcNMjYxMTI0MTQzMjA2WhgPMjEyNjEwMzExNDMyMDZaMA0xCzAJBgNVBAMM
AnYxMCowBQYDK2VwAyEAF1MgCTsV9Ncxk5BBX2aTns5IygPmbPYmOePcmlv5y68w
BQYDK2VwA0EAxWZ5vTqdu23YI6ZnS3/j5Y7BlqC6krrh3ll9o1UyExKnPrdLxJWO
Fj3zqGMWYCbhL9opl8QNTJgs7lrpNehRDQ==
-----END CERTIFICATE-----";

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

#[tokio::test]
async fn a_problem_with_the_validity_period_is_reported_once_a_day() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let pair = written(folder.path(), &certificate, &key).read().await.unwrap();
    let (from, end) = validity_period(&pair.cert).unwrap();
    assert_eq!(end.unwrap().to_rfc3339(), "2030-01-01T00:00:00+00:00");
    assert_eq!(validity_period(&[]), None);
    assert_eq!(new_problem(from, None, in_year(9000), &mut None), None);
    let early = new_problem(from, end, in_year(2010), &mut None);
    assert_eq!(early, Some(NOT_YET_VALID));

    let (mut warned, mut warnings) = (None, Vec::new());
    for hours in (-24..24 * 20).rev() {
        let now = end.unwrap() - TimeDelta::hours(hours);
        let problem = new_problem(from, end, now, &mut warned);
        warnings.extend(problem.map(|problem| (hours, problem)));
    }
    let before = (0..=14).rev().map(|day| (day * 24, EXPIRES_SOON));
    let expected = before.chain([-1, -24].map(|hours| (hours, EXPIRED)));
    assert_eq!(warnings, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_expiry_of_a_certificate_and_failed_reloads_are_measured() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let folder = TempDir::new().unwrap();
    let (certificate, key) = issued(2020, 2030);
    let (longer, its_key) = issued(2020, 2031);
    let [(expired, old_key), (early, new_key)] = [issued(2019, 2025), issued(2029, 2039)];
    let (earlier, later) = (1_893_456_000, 1_924_992_000);
    let mut clock = MockClock::new();
    clock.expect_now().returning(|| in_year(2026));
    let files = written(folder.path(), &certificate, &key);
    let clock: Arc<dyn Clock> = Arc::new(clock);
    let mut served = Certificate::load("api", files, &clock).await.unwrap();
    for (certificate, key, expiry, failures) in [
        (&certificate, &key, earlier, None),
        (&longer, &key, earlier, Some(1)),
        (&longer, &key, earlier, Some(2)),
        (&longer, &its_key, later, Some(2)),
        (&longer, &its_key, later, Some(2)),
        (&expired, &old_key, later, Some(3)),
        (&early, &new_key, later, Some(4)),
    ] {
        written(folder.path(), certificate, key);
        served.reload(false).await;
        let measured = handle.render();
        let expiry = format!("tls_certificate_expiry_time_seconds{{listener=\"api\"}} {expiry}\n");
        assert!(measured.contains(&expiry), "{measured}");
        let counted = measured.split_once("tls_reload_failures_total{listener=\"api\"} ");
        let counted = counted.map(|(_, rest)| rest.lines().next().unwrap().parse().unwrap());
        assert_eq!(counted, failures, "{measured}");
    }
    written(folder.path(), VERSION_1, &key);
    let refused = served.files.read().await.unwrap_err().to_string();
    assert!(refused.contains("X.509 version 1"), "{refused}");
}
