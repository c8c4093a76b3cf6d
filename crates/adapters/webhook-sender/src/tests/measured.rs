//! What is measured.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use super::{
    receiver::{OK, Receiver},
    support::{outcome, sender},
};

/// The last value of each meter, by name and labels.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<BTreeMap<String, f64>>>);

struct Line(Board, String);

impl Line {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut lines = self.0.0.lock().unwrap();
        let value = lines.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Line {
    fn increment(&self, value: u64) {
        self.change(|before| before + f64::from(u32::try_from(value).unwrap()));
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Line {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}
    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Line {
    fn record(&self, value: f64) {
        assert!((0.0..10.0).contains(&value));
        self.change(|before| before + 1.0);
    }
}

impl Board {
    fn line(&self, key: &Key) -> Arc<Line> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        let name = std::iter::once(key.name().to_owned()).chain(labels).collect();
        Arc::new(Line(self.clone(), name))
    }
}

impl Recorder for Board {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.line(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.line(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.line(key))
    }
}

#[tokio::test]
async fn attempts_are_counted_by_outcome_and_kept_connections_told() {
    let board = Board::default();
    let _recording = metrics::set_default_local_recorder(&board);
    let sender = sender();
    let fine = Receiver::answering(OK).await;
    let busy = Receiver::answering(b"HTTP/1.1 503 x\r\nconnection: close\r\n\r\n").await;
    for url in [
        fine.url(),
        fine.url(),
        busy.url(),
        "http://[::ffff:0:0]:1/".to_owned(),
    ] {
        outcome(&sender, &url).await;
    }
    let lines = board.0.lock().unwrap().clone();
    let expected = [
        ("webhook_attempt_duration_seconds", 4.0),
        ("webhook_attempts_total outcome=2xx", 2.0),
        ("webhook_attempts_total outcome=5xx", 1.0),
        ("webhook_attempts_total outcome=refused", 1.0),
        ("webhook_kept_connections", 1.0),
    ];
    let lines = lines
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect::<Vec<_>>();
    assert_eq!(lines, expected);
}
