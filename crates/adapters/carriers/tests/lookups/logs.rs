//! The clients' logs: what they contain, and what they never contain.

use std::{
    io,
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use orders::Carrier;
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

use crate::{
    fixtures,
    stub::Reply,
    world::{CARRIERS, LOGIN, NUMBER, SECRET, World, found},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Captures everything that this thread logs while the guard exists, including the HTTP client's traces.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false);
        (log.clone(), tracing::subscriber::set_default(subscriber.finish()))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn own_lines(&self) -> Vec<String> {
        self.text()
            .lines()
            .filter(|line| line.contains("adapter_carriers"))
            .map(ToOwned::to_owned)
            .collect()
    }
}

#[tokio::test]
async fn an_unlisted_code_is_one_line() {
    for carrier in CARRIERS {
        let (log, _guard) = Log::begin();
        let world = World::new(carrier).await;
        found(world.ask().await);
        assert_eq!(log.own_lines(), [""; 0], "{carrier:?}");
        // XML cannot contain an escape character.
        let code = if carrier == Carrier::Dpd {
            "N0T-LISTED"
        } else {
            "N0T-LISTED\u{1b}"
        };
        found(world.hears(fixtures::parcel(carrier, code)).await);
        let lines = log.own_lines();
        assert_eq!(lines.len(), 1, "{carrier:?}: {lines:?}");
        for part in ["WARN", carrier.as_str(), "N0T-LISTED"] {
            assert!(lines[0].contains(part), "{lines:?}");
        }
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }
}

#[tokio::test]
async fn no_credential_is_ever_logged_or_told() {
    for carrier in CARRIERS {
        let (log, _guard) = Log::begin();
        let mut told = Vec::new();
        for replies in [
            vec![fixtures::delivered(carrier)],
            vec![Reply::new(401, "{}"), fixtures::delivered(carrier)],
            vec![
                Reply::new(500, ""),
                Reply::new(503, ""),
                Reply::Truncated(String::new()),
                Reply::new(429, ""),
            ],
            vec![Reply::new(401, format!("{LOGIN} {SECRET}"))],
        ] {
            let world = World::new(carrier).await;
            let count = replies.len();
            world.stub.says(replies);
            for _ in 0..=count {
                told.push(format!("{:?}", world.ask().await));
            }
        }
        let url = url::Url::parse("https://carrier.example/").unwrap();
        told.push(format!(
            "{:?}",
            crate::world::settings(carrier, &url, adapter_carriers::DEADLINE)
        ));
        let text = log.text() + &told.concat();
        assert!(
            text.contains("hyper_util") && text.contains("adapter_carriers"),
            "something was logged"
        );
        let pair = STANDARD.encode(format!("{LOGIN}:{SECRET}"));
        for hidden in [LOGIN, SECRET, "access3token", &pair, NUMBER] {
            assert!(!text.contains(hidden), "{carrier:?} tells {hidden}");
        }
    }
}

#[tokio::test]
async fn pauses_and_refused_credentials_are_told_once() {
    let (log, _guard) = Log::begin();
    let world = World::new(Carrier::Inpost).await;
    for _ in 0..7 {
        world.hears(Reply::new(500, "")).await;
    }
    world.clock.forward(30);
    world.hears(fixtures::delivered(Carrier::Inpost)).await;
    for _ in 0..3 {
        world.hears(Reply::new(401, "")).await;
    }
    let levels: Vec<_> = log
        .own_lines()
        .iter()
        .map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(levels, ["WARN", "INFO", "ERROR"]);
}
