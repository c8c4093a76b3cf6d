//! Runs Chromium and its driver as processes of one test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::ops::Deref;
use std::process::{Child, Command, Stdio};

use blackbox::{on_path, skipped};
use serde_json::json;
use tempfile::TempDir;

use crate::driver::Session;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const DRIVERS: [&str; 2] = ["chromedriver", "chromium.chromedriver"];

/// A running browser. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Browser {
    session: Session,
    _driver: Driver,
    _profile: TempDir,
}

/// The driver's process. Dropping it kills the process.
#[derive(Debug)]
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Options of a browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Whether pages may run scripts.
    pub(crate) scripts: bool,
    /// The address that serves `https://app.example`.
    pub(crate) other_origin: Option<SocketAddr>,
}

impl Options {
    /// No other origin is served.
    pub(crate) const fn with_scripts(scripts: bool) -> Self {
        Self {
            scripts,
            other_origin: None,
        }
    }
}

impl Browser {
    /// Starts a browser. `None` if none is installed, after a report; the test fails if `CI` is set.
    pub(crate) async fn start(options: Options) -> Option<Self> {
        let (Some(browser), Some(driver)) = (installed(&BROWSERS), installed(&DRIVERS)) else {
            skipped("Chromium and its driver are not installed (apt install chromium chromium-driver)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The driver ends if another program takes the port that it has chosen.
        let mut attempts = (0..5).map(|_| Driver::start(&driver));
        let (driver, url) = attempts.find_map(|started| started).expect("the driver listens");
        let session = Session::open(&url, capabilities(&browser, &profile, options)).await;
        Some(Self {
            session,
            _driver: driver,
            _profile: profile,
        })
    }
}

impl Deref for Browser {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for Browser {
    /// Closing waits for the driver, so it runs in a separate thread: the test may be inside a runtime.
    fn drop(&mut self) {
        let session = self.session.clone();
        let closed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(session.close());
        });
        drop(closed.join());
    }
}

fn capabilities(browser: &str, profile: &TempDir, options: Options) -> serde_json::Value {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-background-networking".to_owned(),
        "--no-first-run".to_owned(),
        "--hide-scrollbars".to_owned(),
        "--lang=en".to_owned(),
        format!("--user-data-dir={}", profile.path().display()),
    ];
    if rustix::process::geteuid().is_root() {
        arguments.push("--no-sandbox".to_owned());
    }
    if let Some(address) = options.other_origin {
        arguments.push(format!("--host-resolver-rules=MAP app.example:443 {address}"));
        arguments.push("--ignore-certificate-errors".to_owned());
    }
    // 1 allows scripts, 2 blocks them.
    let scripts = if options.scripts { 1 } else { 2 };
    json!({
        "browserName": "chrome",
        "pageLoadStrategy": "normal",
        // The API reference keeps a busy machine's browser busy for longer than the usual half a minute.
        "timeouts": {"script": 60_000},
        "goog:loggingPrefs": {"browser": "ALL"},
        "goog:chromeOptions": {
            "binary": browser,
            "args": arguments,
            "prefs": {
                "profile.managed_default_content_settings.javascript": scripts,
                "intl.accept_languages": "en",
            },
        },
    })
}

fn installed(names: &[&str]) -> Option<String> {
    let program = names.iter().find_map(|name| on_path(name))?;
    Some(program.display().to_string())
}

impl Driver {
    /// A driver with its URL; `None` if it ends before it listens.
    fn start(program: &str) -> Option<(Self, String)> {
        let driver = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut driver = Self(driver.expect("the driver starts"));
        let mut lines = BufReader::new(driver.0.stdout.take()?).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        })?;
        // The rest of its output is read, so that the driver is not blocked.
        std::thread::spawn(move || lines.for_each(drop));
        Some((driver, format!("http://127.0.0.1:{port}")))
    }
}
