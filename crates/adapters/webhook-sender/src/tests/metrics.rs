//! Metrics.

use metrics_exporter_prometheus::PrometheusBuilder;

use super::{
    receiver::{OK, Receiver},
    support::{outcome, sender},
};

#[tokio::test]
async fn attempts_are_counted_by_outcome_and_idle_connections_reported() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let sender = sender();
    let fine = Receiver::answering(OK).await;
    let busy = Receiver::answering(b"HTTP/1.1 503 x\r\nconnection: close\r\n\r\n").await;
    let refused = "http://[::ffff:0:0]:1/".to_owned();
    for url in [fine.url(), fine.url(), busy.url(), refused] {
        outcome(&sender, &url).await;
    }
    let report = recorder.handle().render();
    for line in [
        "webhook_attempt_duration_seconds_count 4",
        "webhook_attempts_total{outcome=\"2xx\"} 2",
        "webhook_attempts_total{outcome=\"5xx\"} 1",
        "webhook_attempts_total{outcome=\"refused\"} 1",
        "webhook_kept_connections 1",
    ] {
        assert!(
            report.lines().any(|reported| reported == line),
            "{line}\n{report}"
        );
    }
}
