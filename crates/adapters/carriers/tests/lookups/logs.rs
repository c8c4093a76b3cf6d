//! The clients' logs: their contents, and secrets that they never contain.

use std::{fmt::Write as _, fs, sync::Arc};

use adapter_carriers::DEADLINE;
use base64::{Engine, engine::general_purpose::STANDARD};
use orders::Carrier;
use tempfile::NamedTempFile;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;

use crate::fixtures;
use crate::world::{CARRIERS, LOGIN, NUMBER, SECRET, World, reply, settings, truncated};

/// Everything that this thread logs while it exists, including the HTTP client's traces.
struct Log {
    file: NamedTempFile,
    _guard: DefaultGuard,
}

impl Log {
    fn begin() -> Self {
        let file = NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(Arc::new(file.reopen().unwrap()))
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false);
        Self {
            file,
            _guard: tracing::subscriber::set_default(subscriber.finish()),
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file.path()).unwrap()
    }

    fn own_lines(&self) -> Vec<String> {
        let text = self.text();
        let own = text.lines().filter(|line| line.contains("adapter_carriers"));
        own.map(ToOwned::to_owned).collect()
    }
}

#[tokio::test]
async fn an_unlisted_code_is_one_line_however_often_it_comes() {
    for (carrier, code) in [
        (Carrier::Inpost, "N0T-LISTED\u{1b}"),
        (Carrier::Dpd, "N0T-LISTED"),
    ] {
        let log = Log::begin();
        let world = World::new(carrier).await;
        world.finds().await;
        assert_eq!(log.own_lines(), [""; 0], "{carrier:?}");
        for _ in 0..2 {
            world.replies([reply(200, fixtures::parcel(carrier, code))]);
            world.finds().await;
        }
        let lines = log.own_lines();
        assert_eq!(lines.len(), 1, "{carrier:?}: {lines:?}");
        for part in ["WARN", carrier.as_str(), "N0T-LISTED"] {
            assert!(lines[0].contains(part), "{lines:?}");
        }
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }
}

#[tokio::test]
async fn neither_logs_nor_results_contain_credentials() {
    for carrier in CARRIERS {
        let log = Log::begin();
        let mut text = format!("{:?}", settings(carrier, "https://carrier.example/", DEADLINE));
        for replies in [
            vec![fixtures::delivered(carrier)],
            vec![reply(401, "{}"), fixtures::delivered(carrier)],
            vec![reply(500, ""), reply(503, ""), truncated(""), reply(429, "")],
            vec![reply(401, format!("{LOGIN} {SECRET}"))],
        ] {
            let world = World::new(carrier).await;
            world.replies(replies);
            for _ in 0..5 {
                let _ = write!(text, "{:?}", world.look_up().await);
            }
        }
        text += &log.text();
        for module in ["hyper_util", "adapter_carriers"] {
            assert!(text.contains(module), "{module} has logged");
        }
        let pair = STANDARD.encode(format!("{LOGIN}:{SECRET}"));
        for hidden in [LOGIN, SECRET, "access3token", &pair, NUMBER] {
            assert!(!text.contains(hidden), "{carrier:?} shows {hidden}");
        }
    }
}

#[tokio::test]
async fn pauses_and_refused_credentials_are_logged_once() {
    let log = Log::begin();
    let world = World::new(Carrier::Inpost).await;
    for _ in 0..7 {
        world.fails_with(reply(500, "")).await;
    }
    world.clock.advance(30);
    world.replies([fixtures::delivered(Carrier::Inpost)]);
    world.finds().await;
    for _ in 0..3 {
        world.fails_with(reply(401, "")).await;
    }
    let lines = log.own_lines();
    let levels: Vec<_> = lines.iter().map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(levels, ["WARN", "INFO", "ERROR"].map(Some));
    assert!(lines[0].contains("HTTP status 500"), "{lines:?}");
}
