//! The configuration of `HAProxy`, before two servers, with and without their database.

use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackbox::{Expect as _, Wire, logs_request, own_loopback, request, requests, set, until};
use rcgen::generate_simple_self_signed;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testkit::{
    Answer, Client, HttpServer, OwnPostgres, Received, ServerOptions, TestServer, read_request, response,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::tools::{installed, of_machine, run};
use crate::{PROGRAM, text};

/// A running proxy over two servers: a master and its worker, as a service runs it. Dropping it ends both.
struct Proxy {
    child: Child,
    /// Its own, and those of the servers.
    addresses: [Ipv4Addr; 3],
    url: String,
    folder: TempDir,
}

/// The configuration with a test's certificate and addresses.
fn configuration(folder: &Path, [proxy, one, two]: [Ipv4Addr; 3]) -> String {
    let certificate = folder.join("proxy.pem");
    let made = generate_simple_self_signed(vec!["api.example".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    text("haproxy.cfg")
        .replace("/etc/haproxy/seller-api.pem", certificate.to_str().unwrap())
        .replace("10.0.0.10", &proxy.to_string())
        .replace("10.0.0.11", &one.to_string())
        .replace("10.0.0.12", &two.to_string())
}

impl Proxy {
    async fn start() -> Option<Self> {
        Self::limited("", "").await
    }

    /// Starts it with another limit of one address, and waits until it listens. `None` without `HAProxy`.
    async fn limited(limit: &str, other: &str) -> Option<Self> {
        let addresses = [own_loopback(), own_loopback(), own_loopback()];
        let mut haproxy = of_machine("haproxy")?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        let whole = configuration(folder.path(), addresses);
        let tls = whole.lines().find(|line| line.contains("bind :443")).unwrap();
        fs::write(&file, &whole).unwrap();
        run(of_machine("haproxy")?.arg("-c").arg("-f").arg(&file));
        // Clients of the test speak plain HTTP, the probe TLS, at an address of its own.
        let own = |port| tls.replace(":443", &format!("{}:{port}", addresses[0]));
        let plain = whole.replace(tls, &format!("    bind {}:8080\n{}", addresses[0], own(8443)));
        // A client of HTTP/1.1 has no more requests in flight than its 200 connections.
        let plain = plain.replace("(in_flight) gt 200", "(in_flight) gt 20");
        let plain = plain.replace("(waiting) gt 1000", "(waiting) gt 30");
        assert!(plain.contains(limit));
        let plain = plain.replace(limit, if limit.is_empty() { limit } else { other });
        fs::write(&file, plain).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        haproxy.args(["-W", "-db", "-f"]).arg(&file);
        let stderr = log.try_clone().unwrap();
        let child = haproxy.stdin(Stdio::null()).stdout(log).stderr(stderr).spawn();
        let proxy = Self {
            child: child.unwrap(),
            addresses,
            url: format!("http://{}:8080", addresses[0]),
            folder,
        };
        until("the proxy listens", async || {
            TcpStream::connect((addresses[0], 8080)).await.is_ok()
        })
        .await;
        Some(proxy)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Whether the proxy holds this server for ready.
    fn holds_ready(&self, server: &str) -> bool {
        let (log, change) = (self.log(), format!("Server public/{server} is "));
        let last = log.lines().rfind(|line| line.contains(&change));
        last.is_some_and(|line| line.contains(" is UP"))
    }

    async fn get(&self, path: &str) -> Answer {
        let url = format!("{}{path}", self.url);
        let request = Client::new().get(&url);
        let request = request.bearer(&format!("ps_pt_{}", "A".repeat(64)));
        // What a client may send to be somebody else, or to have its requests traced.
        let request = request.header("x-forwarded-for", "203.0.113.9");
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        request.header("traceparent", trace).send().await
    }
}

/// The blackbox exporter at the proxy's address, and where it probes the proxy. `None` if it is not
/// installed.
async fn probing(proxy: &Proxy) -> Option<(tokio::process::Child, String)> {
    let exporter = installed("prometheus-blackbox-exporter")?;
    let address = proxy.addresses[0];
    let [file, authority] = ["blackbox.yml", "proxy.pem"].map(|name| proxy.folder.path().join(name));
    let trust = format!(
        "tls_config: {{ca_file: {}, server_name: api.example}}",
        authority.display()
    );
    let probes = format!("{}      {trust}\n", text("prometheus/blackbox.yml"));
    fs::write(&file, probes).unwrap();
    let mut exporter = tokio::process::Command::from(exporter);
    exporter.arg(format!("--config.file={}", file.display()));
    exporter.arg(format!("--web.listen-address={address}:9115"));
    let started = exporter.stderr(Stdio::null()).kill_on_drop(true).spawn();
    until("the exporter listens", async || {
        TcpStream::connect((address, 9115)).await.is_ok()
    })
    .await;
    let url = format!("http://{address}:9115/probe?module=seller_api&target=https://{address}:8443/v1/me");
    Some((started.unwrap(), url))
}

/// Whether what is scraped there has this line.
async fn shows(url: &str, line: &str) -> bool {
    let answer = Client::new().get(url).send().await.expect(200);
    String::from_utf8_lossy(&answer.bytes).contains(&format!("\n{line}"))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        drop(self.child.wait());
    }
}

/// A server that trusts the proxy, at the ports of the configuration.
async fn server(address: Ipv4Addr, proxy: Ipv4Addr, database: &str) -> TestServer {
    let settings = [
        ("SERVER__BIND", &*format!("{address}:8080")),
        ("SERVER__BACKOFFICE_BIND", &format!("{address}:8081")),
        ("SERVER__PUBLIC_URL", "http://api.example"),
        ("SERVER__TRUSTED_PROXIES", &format!("127.0.0.1,{proxy}")),
    ];
    TestServer::listen(&set(ServerOptions::new(PROGRAM), &settings), database).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_clients_get_the_services_own_answer() {
    let Some(proxy) = Proxy::start().await else { return };
    let postgres = OwnPostgres::start(|options| options).await;
    let url = postgres.database().url().to_owned();
    let [address, first, second] = proxy.addresses;
    let mut one = server(first, address, &url).await;
    let two = server(second, address, &url).await;
    // Not as servers that are not ready, which answer too.
    let is_found = async || proxy.holds_ready("one") && proxy.holds_ready("two");
    until("the proxy finds them", is_found).await;
    proxy.get("/v1/me").await.expect(401);
    let probe = probing(&proxy).await;
    if let Some((_, url)) = &probe {
        assert!(shows(url, "probe_success 1\n").await);
        assert!(shows(url, "probe_ssl_earliest_cert_expiry ").await);
    }
    let metrics = format!("http://{address}:8405/metrics");
    let is_up = r#"haproxy_server_status{proxy="public",server="two",state="UP"} 1"#;
    until("both are up", async || shows(&metrics, is_up).await).await;

    let started = proxy.log().len();
    tokio::task::block_in_place(|| postgres.cluster().stop()).unwrap();
    one.not_ready().await;
    two.not_ready().await;
    // Before the proxy has noticed, and after.
    let refuses_in_its_form = async || {
        let answer = proxy.get("/v1/me").await.expect(500);
        assert_eq!(answer.code(), "internal_error");
        assert!(answer.must("retry-after").parse::<u32>().is_ok(), "{answer:?}");
        assert_eq!(answer.json()["traceId"], answer.must("x-trace-id"));
    };
    until("the proxy has noticed", async || {
        refuses_in_its_form().await;
        proxy.log()[started..].contains("Running on backup")
    })
    .await;
    refuses_in_its_form().await;
    // One of them dies: the other one still answers.
    one.kill();
    for _ in 0..10 {
        proxy.get("/v1/me").await.expect(500);
    }
    let answer = proxy.get("/v1/me").await;
    let trace_id = answer.must("x-trace-id").to_owned();
    let log = two.log_with(|log| logs_request(log, &trace_id)).await;
    let line = requests(&log)
        .into_iter()
        .find(|line| line["trace_id"] == trace_id.as_str());
    assert_eq!(line.unwrap()["client_address"], "127.0.0.1");

    // Without any process, the proxy answers in the forms of the service.
    drop((one, two));
    let answer = proxy.get("/v1/me").await;
    answer.refused(503, "internal_error");
    if let Some((_, url)) = &probe {
        assert!(shows(url, "probe_success 0\n").await);
    }
    assert_eq!(answer.must("retry-after"), "5");
    let answer = proxy.get("/oauth/token").await;
    answer.oauth_error(503, "server_error");
    assert_eq!(answer.must("retry-after"), "5");
}

/// `systemctl reload haproxy` sends this signal.
#[tokio::test]
async fn a_reload_of_the_proxy_loses_no_request() {
    let Some(proxy) = Proxy::start().await else { return };
    let _received = [behind(&proxy, 1).await, behind(&proxy, 2).await];
    let is_done = AtomicBool::new(false);
    let ask = async || {
        let mut asked = 0;
        while !is_done.load(Ordering::Relaxed) {
            proxy.get("/v1/me").await.expect(200);
            asked += 1;
        }
        asked
    };
    let loaded = || proxy.log().matches("Loading success").count();
    let reload = async {
        for _ in 0..3 {
            let before = loaded();
            // The master ignores the signal while it begins.
            until("it has loaded anew", async || {
                kill_process(Pid::from_child(&proxy.child), Signal::USR2).unwrap();
                sleep(Duration::from_millis(500)).await;
                loaded() > before
            })
            .await;
        }
        is_done.store(true, Ordering::Relaxed);
    };
    let (one, two, ()) = tokio::join!(ask(), ask(), reload);
    assert!(one > 3 && two > 3, "{one}, {two}");
}

/// Starts the proxy's server of this number, which answers 200, but nobody who waits, and lets the proxy find
/// it. Returns what reaches it.
async fn behind(proxy: &Proxy, number: usize) -> UnboundedReceiver<Received> {
    let (seen, received) = unbounded_channel();
    let handle = move |mut stream: TcpStream| {
        let seen = seen.clone();
        async move {
            let mut unread = Vec::new();
            while let Some(request) = read_request(&mut stream, &mut unread).await {
                let waits = request.target().ends_with("?wait=30");
                // The test may have ended.
                drop(seen.send(request));
                if !waits {
                    drop(stream.write_all(&response(200, [], b"{}")).await);
                }
            }
        }
    };
    for port in [8080, 8081] {
        HttpServer::start_at((proxy.addresses[number], port), handle.clone()).await;
    }
    until("the proxy finds it", async || {
        proxy.get("/v1/me").await.status == 200
    })
    .await;
    received
}

#[tokio::test]
async fn what_clients_say_about_their_address_and_trace_is_dropped() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut received = behind(&proxy, 1).await;
    let request = loop {
        let request = received.recv().await.unwrap();
        if request.target() == "/v1/me" {
            break request;
        }
        assert_eq!(request.target(), "/readyz");
    };
    assert_eq!(request.header("x-forwarded-for"), "127.0.0.1");
    let traces = |(name, _): &(String, String)| name == "traceparent";
    assert!(!request.headers.iter().any(traces), "{request:?}");
}

#[tokio::test]
async fn one_address_does_not_take_all_connections() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut held = Vec::new();
    for _ in 0..210 {
        held.extend(TcpStream::connect((proxy.addresses[0], 8080)).await.ok());
    }
    let is_ended = |stream: &&TcpStream| match stream.try_read(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    };
    until("ten are refused", async || {
        let left = held.iter().filter(|stream| !is_ended(stream)).count();
        // That of the test's own look whether the proxy listens may be counted still.
        left == 200 || left == 199
    })
    .await;
}

#[tokio::test]
async fn one_address_has_few_requests_in_flight_beside_readers_that_wait() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut received = behind(&proxy, 1).await;
    let mut held = Vec::new();
    for (path, number) in [("/v1/events", 30), ("/v1/offers", 20)] {
        proxy.get("/v1/me").await.expect(200);
        for _ in 0..number {
            let mut wire = Wire::connect(&proxy.url).await;
            wire.send(request("GET", &format!("{path}?wait=30"), &[])).await;
            held.push(wire);
            while !received.recv().await.unwrap().target().ends_with("?wait=30") {}
        }
    }
    for path in ["/v1/me", "/v1/events"] {
        proxy.get(path).await.refused(429, "rate_limited");
    }
    proxy.get("/oauth/token").await.oauth_error(429, "rate_limited");
}

#[tokio::test]
async fn one_address_has_few_requests_a_second() {
    let Some(proxy) = Proxy::limited("gpc0_rate gt 2000", "gpc0_rate gt 5").await else {
        return;
    };
    let _received = behind(&proxy, 1).await;
    let mut wire = Wire::connect(&proxy.url).await;
    let mut first_refused = async |path: &str| {
        for _ in 0..1_000 {
            wire.send(request("GET", path, &[])).await;
            let answer = wire.answer().await.unwrap();
            if answer.status != 200 {
                return answer;
            }
        }
        panic!("a thousand are answered")
    };
    first_refused("/v1/me").await.refused(429, "rate_limited");
    first_refused("/oauth/token")
        .await
        .oauth_error(429, "rate_limited");

    // Who goes on asking is served as many.
    let served = async {
        loop {
            wire.send(request("GET", "/v1/me", &[])).await;
            if wire.answer().await.unwrap().status == 200 {
                break;
            }
        }
    };
    timeout(Duration::from_secs(10), served).await.unwrap();
}

#[tokio::test]
async fn one_address_has_few_new_connections_in_ten_seconds() {
    let Some(proxy) = Proxy::limited("conn_rate gt 2000", "conn_rate gt 20").await else {
        return;
    };
    let _received = behind(&proxy, 1).await;
    let mut served = 0;
    while served < 30 {
        // The proxy may end a connection before anything is sent.
        let Ok(mut wire) = Wire::try_connect(&proxy.url).await else {
            break;
        };
        wire.send(request("GET", "/v1/me", &[])).await;
        let Some(answer) = wire.answer().await else { break };
        assert_eq!(answer.status, 200);
        served += 1;
    }
    // The test looked whether the proxy listens.
    assert!((10..=20).contains(&served), "{served}");
}

#[tokio::test]
async fn a_body_that_stalls_reaches_no_process() {
    let Some(proxy) = Proxy::start().await else { return };
    let mut received = behind(&proxy, 1).await;
    let stalled = async |path: &str| {
        let mut wire = Wire::connect(&proxy.url).await;
        let head = request("POST", path, &[("content-length", "1000")]);
        wire.send(head + "{").await;
        wire.answer().await.unwrap()
    };
    let (api, oauth) = tokio::join!(stalled("/v1/offers"), stalled("/oauth/token"));
    api.refused(408, "validation_error");
    oauth.oauth_error(408, "invalid_request");
    // One that arrives does, also if it is larger than what the proxy keeps.
    let large = "x".repeat(65_536);
    for body in ["{}", large.as_str()] {
        let mut wire = Wire::connect(&proxy.url).await;
        let length = body.len().to_string();
        let headers = [("content-length", length.as_str()), ("expect", "100-continue")];
        wire.send(request("POST", "/v1/orders", &headers)).await;
        wire.answer().await.unwrap().expect(100);
        wire.send(body).await;
        wire.answer().await.unwrap().expect(200);
    }
    let mut posted = Vec::new();
    while let Ok(request) = received.try_recv() {
        if request.request_line.starts_with("POST ") {
            posted.push((request.target().to_owned(), request.body.len()));
        }
    }
    let expected = [2, 65_536_usize].map(|length| ("/v1/orders".to_owned(), length));
    assert_eq!(posted, expected);
}
