//! The sandbox: its seed data, trade in it, and its life over a folder or a given database.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use blackbox::{
    Expect, Receiver, Sandbox, Seller, eventually, items, line, mail_files, order_body, run, sorted, text,
    until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Answer, Client, Request, TestDatabase};
use tokio_postgres::NoTls;

use crate::PROGRAM;

#[track_caller]
fn has_keys(value: &Value, names: &str) {
    let keys = value.as_object().expect("an object").keys();
    assert!(keys.map(String::as_str).eq(names.split(' ')), "{value}");
}

/// A public client: it has no secret, and gets tokens by consent only.
fn is_public(application: &Value) -> bool {
    application["client_secret"].is_null()
}

/// Asserts the documented form of the credentials.
fn assert_form(credentials: &Value) {
    let keys = "backoffice_token backoffice_url base_url database_url sellers";
    has_keys(credentials, keys);
    for (key, beginning) in [
        ("base_url", "http://127.0.0.1:"),
        ("backoffice_url", "http://127.0.0.1:"),
        ("backoffice_token", "ps_op_"),
        ("database_url", "postgres"),
    ] {
        let value = text(credentials, key);
        assert!(value.starts_with(beginning) && !value.ends_with('/'), "{value}");
    }
    let sellers = credentials["sellers"].as_array().unwrap();
    assert!(sellers.len() >= 3);
    for seller in sellers {
        let keys = "applications email examples id password personal_token seller_no";
        has_keys(seller, keys);
        has_keys(&seller["examples"], "multi_seller_order offer order test_order");
        assert!(seller["seller_no"].is_i64() && text(seller, "email").contains('@'));
        assert!(!text(seller, "password").is_empty());
        assert!(text(seller, "personal_token").starts_with("ps_pt_"));
        for application in seller["applications"].as_array().unwrap() {
            let keys = "client_id client_secret name redirect_uris scopes status";
            has_keys(application, keys);
            assert!(text(application, "client_id").starts_with("psa_"));
            assert!(is_public(application) || text(application, "client_secret").starts_with("pss_"));
            let redirects = sorted(&application["redirect_uris"]);
            assert_eq!(redirects.len(), 1, "{application}");
            let redirect = redirects[0];
            assert!(redirect.starts_with("https://") && redirect.contains(".example/"));
        }
    }
}

/// A sandbox from its first seller's view.
struct Trade {
    sandbox: Sandbox,
    first: Value,
    mail: PathBuf,
}

impl Trade {
    async fn start(data: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::start(PROGRAM, data, flags, environment).await;
        Self {
            first: sandbox.credentials["sellers"][0].clone(),
            mail: data.join("mail"),
            sandbox,
        }
    }

    fn token(&self) -> &str {
        self.first["personal_token"].as_str().unwrap()
    }

    fn example(&self, name: &str) -> &str {
        self.first["examples"][name].as_str().unwrap()
    }

    async fn read(&self, path: &str) -> Value {
        self.read_as(self.token(), path).await
    }

    async fn read_as(&self, token: &str, path: &str) -> Value {
        self.sandbox.get(token, path).await.expect(200).json()
    }

    fn url(&self, base: &str, path: &str) -> String {
        format!("{}{path}", self.sandbox.text(base))
    }

    async fn order(&self, order: &str) -> Value {
        self.read(&format!("/v1/orders/{order}")).await
    }

    async fn is_ready(&self) -> bool {
        let url = self.url("backoffice_url", "/readyz");
        Client::new().get(&url).send().await.status == 200
    }

    /// The number of the seller's orders by status, and their numbers.
    async fn orders(&self) -> (BTreeMap<String, usize>, Vec<String>) {
        let page = self.read("/v1/orders?limit=200").await;
        let (mut statuses, mut numbers) = (BTreeMap::new(), Vec::new());
        for order in items(&page) {
            *statuses.entry(text(order, "status")).or_default() += 1;
            numbers.push(text(order, "order_number"));
        }
        (statuses, numbers)
    }

    /// A POST with a body.
    fn post(&self, base: &str, path: &str, body: &Value) -> Request {
        Client::new().post(&self.url(base, path)).json(body)
    }

    async fn office(&self, path: &str, body: &Value) -> Answer {
        let token = self.sandbox.text("backoffice_token");
        let request = self.post("backoffice_url", path, body);
        request.bearer(&token).send().await
    }

    /// A new paid order of the seller.
    async fn paid(&self) -> String {
        let seller = Seller {
            id: text(&self.first, "id"),
            seller_no: 1,
            email: String::new(),
        };
        let body = order_body(&[line(&seller, self.example("offer"), 1)], json!({}));
        let placed = self.office("/orders", &body).await.expect(201).json();
        let id = text(&placed, "order_id");
        let payment = format!("/orders/{id}/payment");
        self.office(&payment, &json!({})).await.expect(200);
        id
    }

    fn shipping(&self, order: &str, carrier: &str, number: &str) -> Request {
        let parcel = json!({"carrier": carrier, "tracking_number": number});
        let request = self.post("base_url", &format!("/v1/orders/{order}/shipments"), &parcel);
        request.bearer(self.token()).header("idempotency-key", number)
    }

    async fn ship(&self, order: &str, carrier: &str, number: &str) -> Answer {
        self.shipping(order, carrier, number).send().await.expect(201)
    }

    /// The mails that contain a text. Asserts that only their owner can read them.
    fn mails(&self, part: &str) -> Vec<String> {
        let read = |path: PathBuf| {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            std::fs::read_to_string(path).unwrap()
        };
        let mails = mail_files(&self.mail).into_iter().map(read);
        mails.filter(|mail| mail.contains(part)).collect()
    }

    /// Connects to the sandbox's database.
    async fn database(&self) -> Option<tokio_postgres::Client> {
        let url = self.sandbox.text("database_url");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.ok()?;
        tokio::spawn(async move { drop(connection.await) });
        Some(client)
    }

    /// The process id of the sandbox's PostgreSQL; `None` while it is down. Its command line may not show its
    /// folder.
    async fn postmaster(&self) -> Option<i32> {
        let read = "select pg_read_file('postmaster.pid')";
        let row = self.database().await?.query_one(read, &[]).await.ok()?;
        row.get::<_, String>(0).lines().next()?.trim().parse().ok()
    }

    async fn end(self, signal: Signal) {
        let code = (signal != Signal::KILL).then_some(0);
        assert_eq!(self.sandbox.end(signal).await, code);
    }
}

async fn sellers_applications_and_offers_are_as_documented(trade: &Trade) {
    let scopes =
        "offers:read offers:write orders:read settings:read settings:write shipments:read shipments:write";
    let scopes: Vec<_> = scopes.split(' ').collect();
    assert_form(&trade.sandbox.credentials);
    for seller in trade.sandbox.credentials["sellers"].as_array().unwrap() {
        let me = trade.read_as(&text(seller, "personal_token"), "/v1/me").await;
        let expected = json!({"id": seller["id"], "seller_no": seller["seller_no"]});
        assert_eq!(me["seller"], expected);
        assert_eq!(sorted(&me["scopes"]), scopes);
        assert_eq!(me["token"]["kind"], "personal");
        let applications = seller["applications"].as_array().unwrap();
        let own = &applications[0];
        let held = sorted(&own["scopes"]);
        assert!(scopes.iter().all(|scope| held.contains(scope)), "{own}");
        for application in applications.iter().filter(|own| !is_public(own)) {
            let grant = json!({
                "grant_type": "client_credentials",
                "client_id": application["client_id"],
                "client_secret": application["client_secret"],
            });
            let answer = trade.post("base_url", "/oauth/token", &grant).send().await;
            if application["status"] == "suspended" {
                assert_eq!(answer.status, 401, "{application}");
                continue;
            }
            let access = text(&answer.expect(200).json(), "access_token");
            let me = trade.read_as(&access, "/v1/me").await;
            let expected = json!({"client_id": application["client_id"], "name": application["name"]});
            assert_eq!(me["app"], expected);
            assert_eq!(sorted(&me["scopes"]), sorted(&application["scopes"]));
        }
    }
    let statuses = |of: &Value| -> BTreeSet<String> {
        let each = of.as_array().unwrap().iter();
        each.map(|one| text(one, "status")).collect()
    };
    let applications = &trade.first["applications"];
    let expected = ["active", "pending", "suspended"].map(str::to_owned);
    assert_eq!(statuses(applications), expected.into());
    assert_eq!(sorted(&applications[0]["scopes"]).len(), 17);
    let mut public = applications.as_array().unwrap().clone();
    public.retain(is_public);
    let is_active = matches!(&public[..], [one] if one["status"] == "active");
    assert!(is_active, "{public:?}");
    let example = format!("/v1/offers/{}", trade.example("offer"));
    trade.read(&example).await;
    let page = trade.read("/v1/offers?limit=200").await;
    let expected = ["draft", "proposed", "published", "rejected"].map(str::to_owned);
    assert_eq!(statuses(&page["items"]), expected.into());
    let offers = items(&page);
    for field in ["price", "stock"] {
        let with = offers.iter().filter(|offer| !offer[field].is_null()).count();
        assert!(
            (1..offers.len()).contains(&with),
            "offers with and without {field}"
        );
    }
}

async fn orders_are_of_every_kind_and_history_stays_as_it_was(trade: &Trade) {
    let (statuses, numbers) = trade.orders().await;
    assert!(numbers.len() > 25, "{numbers:?}");
    for status in ["pending", "processing", "shipped", "delivered", "cancelled"] {
        assert!(statuses[status] > 0, "{statuses:?}");
    }
    assert!(trade.mails("").is_empty(), "no mails for old shipments");
    for seller in trade.sandbox.credentials["sellers"].as_array().unwrap() {
        let path = format!("/v1/orders/{}", text(&seller["examples"], "order"));
        let order = trade.read_as(&text(seller, "personal_token"), &path).await;
        assert_eq!(
            (&order["status"], &order["is_test"]),
            (&json!("processing"), &json!(false))
        );
    }
    let example = trade.order(trade.example("order")).await;
    assert!(example["delivery_point"].is_object() && example["invoice"].is_object());
    let test = trade.order(trade.example("test_order")).await;
    assert!(test["is_test"] == true && !numbers.contains(&text(&test, "order_number")));
    let several = trade.shipping(trade.example("multi_seller_order"), "inpost", "1234");
    assert_eq!(several.send().await.expect(409).code(), "multi_seller_order");
    // The guide's requests can ship the example order.
    let test = trade.example("test_order");
    trade.shipping(test, "dhl", "AA-DELIVERED-1").send().await;
    let status = &trade.order(test).await["status"];
    assert_ne!(status, "delivered", "test orders query no carrier");

    let example = trade.example("order");
    trade.ship(example, "inpost", "LATER1234").await;
    let is_delivered = async || trade.order(example).await["status"] == "delivered";
    until("the delivery", is_delivered).await;
    until("its mail", async || !trade.mails("LATER1234").is_empty()).await;
    let (now, _) = trade.orders().await;
    assert_eq!(now["shipped"], statuses["shipped"], "other orders stay shipped");
}

async fn carriers_go_by_the_tracking_number_and_mails_lie_in_the_folder(trade: &Trade) {
    for (carrier, number, already, status) in [
        ("dhl", "AA-DELIVERED-2", true, "delivered"),
        ("gls", "AA-TRANSIT-1", false, "shipped"),
        ("ups", "AA-ERROR-1", false, "shipped"),
        ("fedex", "AA-TIMEOUT-1", false, "shipped"),
        ("dpd", "AA-NOBODYS-1", false, "shipped"),
        // `other` is never queried, not even in the sandbox.
        ("other", "AA-DELIVERED-3", false, "shipped"),
    ] {
        let order = trade.paid().await;
        let made = trade.ship(&order, carrier, number).await.json();
        let found = (&made["delivered_already"], &made["buyer_notified"]);
        assert_eq!(found, (&json!(already), &json!(!already)), "{number}");
        let seen = trade.order(&order).await;
        assert_eq!(seen["status"], status, "{number}");
        assert!(!already || seen["shipped_at"] == seen["delivered_at"]);
    }
    assert!(trade.mails("AA-DELIVERED-2").is_empty());
    let order = trade.paid().await;
    let number = "520000000000000000TRANSIT1";
    trade.ship(&order, "inpost", number).await;
    let mail = eventually("the mail", async || trade.mails(number).pop()).await;
    assert!(
        mail.contains("ewa@buyer.example") && mail.contains("InPost"),
        "{mail}"
    );
    let shipment = &trade.order(&order).await["shipment"];
    assert_eq!(shipment["tracking_status"], "in_transit");
}

#[tokio::test]
async fn an_empty_database_becomes_a_sandbox() {
    let (database, folder) = (TestDatabase::empty().await, tempfile::tempdir().unwrap());
    let data = folder.path().join("data");
    let environment = [
        ("DATABASE_URL", database.url()),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "1234"),
        ("SELLER_API__TRACKING__POLL_INTERVAL", "100ms"),
    ];
    let trade = Trade::start(&data, &[], &environment).await;
    assert_eq!(trade.sandbox.credentials["database_url"], database.url());
    let limited = trade.sandbox.get(trade.token(), "/v1/me").await.expect(200);
    assert_eq!(limited.must("x-ratelimit-limit"), "1234", "settings apply");
    sellers_applications_and_offers_are_as_documented(&trade).await;
    orders_are_of_every_kind_and_history_stays_as_it_was(&trade).await;
    carriers_go_by_the_tracking_number_and_mails_lie_in_the_folder(&trade).await;

    // Deliveries go to this machine too, by default; to other private addresses or nowhere but the internet
    // if configured.
    let receiver = Receiver::start().await;
    assert_eq!(trade.read("/v1/webhooks").await["items"], json!([]));
    let subscribe = async |trade: &Trade, url: &str, status: u16| {
        let hook = json!({"url": url, "events": ["order.shipped"]});
        let request = trade.post("base_url", "/v1/webhooks", &hook);
        request.bearer(trade.token()).send().await.expect(status)
    };
    for refused in ["http://10.0.0.1/", "https://192.168.0.1/", "http://1.1.1.1/"] {
        subscribe(&trade, refused, 400).await;
    }
    let made = subscribe(&trade, &receiver.url, 201).await.json();
    assert!(!trade.sandbox.output().contains("ANY address"));
    let order = trade.paid().await;
    trade.ship(&order, "dpd", "0000000001").await;
    let delivery = receiver.hears("order.shipped").await;
    assert_eq!(delivery.json()["data"]["order_id"], order);
    delivery.is_signed_by(&text(&made, "secret")).await;
    let token = trade.token().to_owned();
    trade.end(Signal::TERM).await;
    for (addresses, url, status) in [
        ("public", receiver.url.as_str(), 400),
        ("any", "http://10.0.0.1/", 201),
    ] {
        let again = Trade::start(&data, &["--webhook-addresses", addresses], &environment).await;
        assert_eq!(again.token(), token);
        assert_eq!(again.sandbox.output().contains("ANY address"), status == 201);
        subscribe(&again, url, status).await;
        again.end(Signal::INT).await;
    }

    let fresh = [Sandbox::arguments(&data).as_slice(), &["--fresh"]].concat();
    let refused = run(PROGRAM, &fresh, &environment).await.failure().stderr;
    assert!(
        refused.contains("--fresh") && refused.contains("DATABASE_URL"),
        "{refused}"
    );
}

/// The content of a dump, without the line that differs each time.
async fn contents(database: &TestDatabase) -> Vec<String> {
    let dump = database.dump().await;
    let lines = dump.lines().filter(|line| !line.contains("restrict "));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_database_that_is_not_empty_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (foreign, production) = (TestDatabase::empty().await, TestDatabase::create().await);
    let customers = "create table customers (id int); insert into customers values (1)";
    foreign.connect().await.batch_execute(customers).await.unwrap();
    let empty = TestDatabase::empty().await;
    for database in [&foreign, &production] {
        let before = contents(database).await;
        let direct = "SELLER_API__DATABASE__DIRECT_URL";
        let itself = [("DATABASE_URL", database.url())];
        for environment in [
            &itself[..],
            &[("DATABASE_URL", empty.url()), (direct, database.url())],
            &[("DATABASE_URL", database.url()), (direct, empty.url())],
        ] {
            // Also a second time, when something of the first one may be left.
            for _ in 0..2 {
                let refused = run(PROGRAM, &Sandbox::arguments(&data), environment).await;
                assert!(refused.failure().stderr.contains("empty"));
                assert!(contents(database).await == before);
            }
        }
    }
    // A start that broke off had claimed it, and was repeated only when it was in use for something else.
    let seller = "insert into sellers (id, name, email, created_at) values (gen_random_uuid(), 's', 's@shop.example', now())";
    production.connect().await.batch_execute(seller).await.unwrap();
    for database in [&foreign, &production] {
        let (before, url) = (contents(database).await, database.url());
        std::fs::write(data.join("claim"), format!("{url}\n{url}")).unwrap();
        let refused = run(PROGRAM, &Sandbox::arguments(&data), &[("DATABASE_URL", url)]).await;
        assert!(refused.failure().stderr.contains("empty"));
        assert!(contents(database).await == before);
    }
}

/// Processes that work in a folder or have it on their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| {
        let path = process.path();
        let works_in = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        let line = String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        (works_in || line.contains(&folder)).then_some(line)
    });
    lines.collect()
}

/// Whether the process is alive. A zombie is not.
fn lives(process: i32) -> bool {
    std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn it_keeps_its_data_stops_cleanly_and_recovers_from_kills() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Trade::start(&data, &[], &[]).await;
    let (token, orders) = (first.token().to_owned(), first.orders().await);
    let credentials = std::fs::metadata(data.join("credentials.json")).unwrap();
    assert_eq!(
        credentials.permissions().mode() & 0o077,
        0,
        "only the owner reads them"
    );
    let output = first.sandbox.output();
    assert!(
        output.contains("curl") && output.contains("ps_pt_"),
        "no example:\n{output}"
    );
    let second = Sandbox::refused(PROGRAM, &data, 1).await;
    assert!(second.stderr.contains("in use"), "{}", second.output());

    let postgres = first.postmaster().await.unwrap();
    assert!(lives(postgres) && !processes_of(&data).is_empty());
    first.end(Signal::INT).await;
    let output = std::fs::read_to_string(data.with_extension("log")).unwrap();
    let (_, end) = output.split_once("SIGINT").expect("the stop is logged");
    assert!(!end.contains("WARN") && !end.contains("ERROR"), "{end}");
    assert!(!lives(postgres));
    assert_eq!(processes_of(&data), Vec::<String>::new());

    // The sandbox is killed, then its PostgreSQL.
    let again = Trade::start(&data, &[], &[]).await;
    assert_eq!((again.token(), &again.orders().await), (&*token, &orders));
    again.end(Signal::KILL).await;
    let again = Trade::start(&data, &[], &[]).await;
    assert_eq!((again.token(), &again.orders().await), (&*token, &orders));
    again.order(again.example("order")).await;
    let postgres = again.postmaster().await.unwrap();
    kill_process(Pid::from_raw(postgres).unwrap(), Signal::KILL).unwrap();
    let anew = eventually("it recovers by itself", async || {
        let anew = again.postmaster().await.filter(|now| *now != postgres)?;
        again.is_ready().await.then_some(anew)
    })
    .await;
    again.read("/v1/offers").await;
    again.end(Signal::TERM).await;
    assert!(!lives(anew));

    let fresh = Trade::start(&data, &["--fresh"], &[]).await;
    assert_ne!(fresh.token(), token);
    fresh.sandbox.get(&token, "/v1/me").await.expect(401);
    fresh.read("/v1/me").await;
    fresh.end(Signal::INT).await;
    assert_eq!(processes_of(&data), Vec::<String>::new());
}

#[tokio::test]
async fn an_unusable_folder_or_port_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    Sandbox::refused(PROGRAM, &file.join("data"), 1).await;

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.path().join("data");
    for [api, office] in [[port.as_str(), "0"], ["0", &port]] {
        let folder = ["sandbox", "--data-dir", data.to_str().unwrap()];
        let ports = ["--port", api, "--backoffice-port", office];
        let arguments = [&folder[..], &ports].concat();
        let refused = run(PROGRAM, &arguments, &[]).await.failure();
        assert!(refused.stderr.contains(&port), "{}", refused.output());
        assert!(processes_of(&data).is_empty());
    }
}
