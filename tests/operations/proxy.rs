//! The configuration of `HAProxy`, before two servers, with and without their database.

use std::fs;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};

use blackbox::{Expect as _, logs_request, own_loopback, requests, until};
use rcgen::generate_simple_self_signed;
use tempfile::TempDir;
use testkit::{Answer, Client, HttpServer, OwnPostgres, ServerOptions, TestServer, read_request, response};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::mpsc::unbounded_channel};

use crate::tools::{of_machine, run};
use crate::{PROGRAM, text};

/// A running proxy over two servers. Dropping it kills it.
struct Proxy {
    child: Child,
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
    /// Starts it at the first address, with servers at the others, and waits until it listens. `None` without `HAProxy`.
    async fn start(addresses: [Ipv4Addr; 3]) -> Option<Self> {
        let mut haproxy = of_machine("haproxy")?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        let whole = configuration(folder.path(), addresses);
        let tls = whole.lines().find(|line| line.contains("bind :443")).unwrap();
        fs::write(&file, &whole).unwrap();
        run(of_machine("haproxy")?.arg("-c").arg("-f").arg(&file));
        // Clients of the test speak plain HTTP, at an address of its own.
        let plain = whole.replace(tls, &format!("    bind {}:8080", addresses[0]));
        fs::write(&file, plain).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        haproxy.arg("-db").arg("-f").arg(&file);
        let child = haproxy.stdin(Stdio::null()).stdout(log).spawn();
        let proxy = Self {
            child: child.unwrap(),
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
        let request = Client::new()
            .get(&url)
            .bearer(&format!("ps_pt_{}", "A".repeat(64)));
        // What a client may send to be somebody else, or to have its requests traced.
        request
            .header("x-forwarded-for", "203.0.113.9")
            .header("forwarded", "for=203.0.113.9")
            .header(
                "traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            )
            .send()
            .await
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Two servers that trust the proxy, at the ports of the configuration.
async fn server(address: Ipv4Addr, proxy: Ipv4Addr, database: &str) -> TestServer {
    let options = ServerOptions::new(PROGRAM)
        .set("SELLER_API__SERVER__BIND", format!("{address}:8080"))
        .set("SELLER_API__SERVER__BACKOFFICE_BIND", format!("{address}:8081"))
        .set(
            "SELLER_API__SERVER__TRUSTED_PROXIES",
            format!("127.0.0.1,{proxy}"),
        );
    TestServer::listen(&options, database).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_clients_get_the_services_own_answer() {
    let addresses = [own_loopback(), own_loopback(), own_loopback()];
    let Some(proxy) = Proxy::start(addresses).await else {
        return;
    };
    let postgres = OwnPostgres::start(|options| options).await;
    let url = postgres.database().url().to_owned();
    let mut one = server(addresses[1], addresses[0], &url).await;
    let two = server(addresses[2], addresses[0], &url).await;
    // Not as servers that are not ready, which answer too.
    let is_found = async || proxy.holds_ready("one") && proxy.holds_ready("two");
    until("the proxy finds them", is_found).await;
    proxy.get("/v1/me").await.expect(401);

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
    assert_eq!(answer.must("retry-after"), "5");
    let answer = proxy.get("/oauth/token").await;
    answer.oauth_error(503, "server_error");
    assert_eq!(answer.must("retry-after"), "5");
}

#[tokio::test]
async fn what_clients_say_about_their_address_and_trace_is_dropped() {
    let addresses = [own_loopback(), own_loopback(), own_loopback()];
    let Some(proxy) = Proxy::start(addresses).await else {
        return;
    };
    let (seen, mut received) = unbounded_channel();
    let handle = move |mut stream: TcpStream| {
        let seen = seen.clone();
        async move {
            let mut unread = Vec::new();
            while let Some(request) = read_request(&mut stream, &mut unread).await {
                // The test may have ended.
                drop(seen.send(request));
                drop(stream.write_all(&response(200, [], b"{}")).await);
            }
        }
    };
    let _public = HttpServer::start_at((addresses[1], 8080), handle.clone()).await;
    let _probes = HttpServer::start_at((addresses[1], 8081), handle).await;
    until("the proxy finds it", async || {
        proxy.get("/v1/me").await.status == 200
    })
    .await;
    let request = loop {
        let request = received.recv().await.unwrap();
        if request.target() == "/v1/me" {
            break request;
        }
        assert_eq!(request.target(), "/readyz");
    };
    assert_eq!(request.header("x-forwarded-for"), "127.0.0.1");
    let dropped = ["forwarded", "traceparent"];
    let is_dropped = |(name, _): &(String, String)| dropped.contains(&name.as_str());
    assert!(!request.headers.iter().any(is_dropped), "{request:?}");
}
