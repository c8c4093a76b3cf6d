//! DNS servers on loopback addresses, and the results of their answers.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use hickory_resolver::proto::{
    op::{Message, OpCode, ResponseCode},
    rr::{Name, RData, Record, RecordType, rdata::CNAME},
};
use tokio::{net::UdpSocket, task::AbortHandle, time::sleep};
use webhooks::{AddressPolicy, Failure, HostCheck as _, HostRefused};

use super::{
    receiver::{OK, Receiver, serve},
    support::{LONG, SHORT, delivers, failed, outcome, send, settings, url},
};
use crate::{HttpSender, SenderSettings};

/// Addresses of both families, an error, or no answer.
type Answer = Option<Result<Vec<IpAddr>, ResponseCode>>;

/// A DNS server with a function that maps the number of earlier queries of a record type to an answer.
struct Names {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, RecordType)>>>,
    task: AbortHandle,
}

impl Names {
    async fn serve(zone: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        Self::later(Duration::ZERO, zone).await
    }

    async fn later(delay: Duration, zone: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut datagram = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut datagram).await.unwrap();
                let query = Message::from_vec(&datagram[..length]).unwrap();
                let question = &query.queries[0];
                let (name, kind) = (question.name().to_ascii(), question.query_type());
                let before = {
                    let mut asked = recorded.lock().unwrap();
                    asked.push((name, kind));
                    asked.iter().filter(|(_, asked)| *asked == kind).count() - 1
                };
                let Some(answer) = zone(before) else { continue };
                let (answer, socket) = (message(&query, answer), Arc::clone(&socket));
                tokio::spawn(async move {
                    sleep(delay).await;
                    socket.send_to(&answer, from).await.unwrap();
                });
            }
        });
        Self {
            address,
            asked,
            task: task.abort_handle(),
        }
    }

    async fn always(addresses: &[&str]) -> Self {
        let addresses = parsed(addresses);
        Self::serve(move |_| Some(Ok(addresses.clone()))).await
    }

    async fn failing(code: ResponseCode) -> Self {
        Self::serve(move |_| Some(Err(code))).await
    }

    fn asked(&self) -> Vec<(String, RecordType)> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }

    fn settings(&self, policy: AddressPolicy) -> SenderSettings {
        let mut settings = settings(policy);
        settings.name_servers = vec![self.address];
        settings
    }

    fn sender(&self, policy: AddressPolicy) -> HttpSender {
        HttpSender::new(&self.settings(policy)).unwrap()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

/// Names that start with `alias.` resolve to their addresses through a CNAME.
fn message(query: &Message, answer: Result<Vec<IpAddr>, ResponseCode>) -> Vec<u8> {
    let question = query.queries[0].clone();
    let mut message = Message::response(query.metadata.id, OpCode::Query);
    message.add_query(question.clone());
    let mut owner = question.name().clone();
    if owner.to_ascii().starts_with("alias.") {
        let target = Name::from_ascii("elsewhere.example.").unwrap();
        message.add_answer(Record::from_rdata(owner, 0, RData::CNAME(CNAME(target.clone()))));
        owner = target;
    }
    match answer {
        Ok(addresses) => {
            let records = addresses.into_iter().map(RData::from);
            for data in records.filter(|data| data.record_type() == question.query_type()) {
                message.add_answer(Record::from_rdata(owner.clone(), 0, data));
            }
        }
        Err(code) => message.metadata.response_code = code,
    }
    message.to_vec().unwrap()
}

/// A webhook URL with this name and a listener's port.
fn at(name: &str, scheme: &str, listener: &Receiver) -> String {
    format!("{scheme}://{name}:{}/hook", listener.address.port())
}

/// Asserts that no connection is made, neither by a delivery nor by the check of a new subscription.
async fn is_refused(sender: &HttpSender, hook: &str) {
    assert_eq!(
        outcome(sender, hook).await,
        failed(Failure::AddressRefused),
        "{hook}"
    );
    assert_eq!(sender.check(&url(hook)).await, Err(HostRefused), "{hook}");
}

#[tokio::test]
async fn a_name_with_any_address_that_is_not_public_gets_no_connection() {
    let listener = Receiver::answering(OK).await;
    for addresses in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1",
        "1.1.1.1 127.0.0.1",
        "127.0.0.1 1.1.1.1",
        "1.1.1.1 ::1",
        "2606:4700:4700::1111 127.0.0.1",
        "1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 192.168.0.1",
    ] {
        let addresses = addresses.split(' ').collect::<Vec<_>>();
        let names = Names::always(&addresses).await;
        let sender = names.sender(AddressPolicy::Public);
        for name in ["hook.example", "alias.example"] {
            let hook = at(name, "https", &listener);
            is_refused(&sender, &hook).await;
        }
    }
    assert_eq!(listener.taken(), 0);
}

#[tokio::test]
async fn literals_local_names_and_plain_http_need_no_name_server_to_be_refused() {
    let names = Names::always(&["1.1.1.1"]).await;
    let listener = Receiver::answering(OK).await;
    let sender = names.sender(AddressPolicy::Public);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST.",
    ] {
        let hook = at(host, "https", &listener);
        is_refused(&sender, &hook).await;
    }
    is_refused(&sender, "http://hook.example/").await;
    assert_eq!((listener.taken(), names.asked()), (0, Vec::new()));
}

#[tokio::test]
async fn a_name_that_is_public_when_checked_and_private_when_sent_to_gets_no_connection() {
    let listener = Receiver::answering(OK).await;
    let names = Names::serve(|before| {
        let address = if before == 0 { "1.1.1.1" } else { "127.0.0.1" };
        Some(Ok(parsed(&[address])))
    })
    .await;
    let sender = names.sender(AddressPolicy::Public);
    let hook = at("rebinding.example", "https", &listener);
    assert_eq!(sender.check(&url(&hook)).await, Ok(()));
    for _ in 0..3 {
        assert_eq!(outcome(&sender, &hook).await, failed(Failure::AddressRefused));
    }
    assert_eq!(listener.taken(), 0);
}

/// Only the first answer is checked, so a connection to the second one would show that names are resolved twice.
#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let denied = Receiver::answering(OK).await;
    let allowed = SocketAddr::new([127, 0, 0, 2].into(), denied.address.port());
    let allowed = Receiver::at(allowed, |stream, _| serve(stream, OK)).await;
    let names = Names::serve(|before| {
        let address = if before % 2 == 0 { "127.0.0.2" } else { "127.0.0.1" };
        Some(Ok(parsed(&[address])))
    })
    .await;
    let mut settings = names.settings(AddressPolicy::Any);
    settings.rules.deny = vec!["127.0.0.1/32".parse().unwrap()];
    settings.kept_connections = 0;
    let sender = HttpSender::new(&settings).unwrap();
    let hook = at("rebinding.example", "http", &denied);
    for _ in 0..5 {
        delivers(&sender, &hook, 1).await;
        assert_eq!(outcome(&sender, &hook).await, failed(Failure::AddressRefused));
    }
    assert_eq!((denied.taken(), allowed.taken()), (0, 5));
    let of_kind = |kind| names.asked().iter().filter(|asked| asked.1 == kind).count();
    assert_eq!((of_kind(RecordType::A), of_kind(RecordType::AAAA)), (10, 10));
}

#[tokio::test]
async fn a_kept_connection_serves_only_while_its_name_leads_to_its_address() {
    let one = Receiver::answering(OK).await;
    let other = SocketAddr::new([127, 0, 0, 2].into(), one.address.port());
    let other = Receiver::at(other, |stream, _| serve(stream, OK)).await;
    let names = Names::serve(|before| {
        let address = if before < 2 { "127.0.0.1" } else { "127.0.0.2" };
        Some(Ok(parsed(&[address])))
    })
    .await;
    let sender = names.sender(AddressPolicy::Any);
    let hook = at("moving.example", "http", &one);
    delivers(&sender, &hook, 4).await;
    assert_eq!((one.taken(), other.taken()), (1, 1));
}

#[tokio::test]
async fn another_address_is_tried_where_one_refuses() {
    let listener = Receiver::answering(OK).await;
    let names = Names::always(&["127.0.0.9", "127.0.0.1"]).await;
    let sender = names.sender(AddressPolicy::Any);
    let hook = at("two.example", "http", &listener);
    delivers(&sender, &hook, 1).await;
}

#[tokio::test]
async fn names_are_absolute_and_asked_for_once() {
    let empty = Names::always(&[]).await;
    let absent = Names::failing(ResponseCode::NXDomain).await;
    for (names, name) in [
        (&empty, "single"),
        (&empty, "nothing.example."),
        (&absent, "absent.example"),
        (&absent, "xn--w-uga1v8h.example"),
    ] {
        names.asked.lock().unwrap().clear();
        let sender = names.sender(AddressPolicy::Public);
        let outcome = outcome(&sender, &format!("https://{name}/")).await;
        assert_eq!(outcome, failed(Failure::Dns));
        let absolute = format!("{}.", name.trim_end_matches('.'));
        let expected = [(absolute.clone(), RecordType::A), (absolute, RecordType::AAAA)];
        assert_eq!(names.asked(), expected);
    }
}

#[tokio::test]
async fn a_silent_name_server_costs_the_time_for_names() {
    let names = Names::serve(|_| None).await;
    let mut settings = names.settings(AddressPolicy::Public);
    settings.resolve_timeout = SHORT;
    let sender = HttpSender::new(&settings).unwrap();
    let attempted = send(&sender, "https://silent.example/").await;
    assert_eq!(attempted.outcome, failed(Failure::Dns));
    assert!(attempted.duration >= SHORT / 2 && attempted.duration < LONG);
    assert_eq!(
        sender.check(&url("https://silent.example/")).await,
        Err(HostRefused)
    );
}

#[tokio::test]
async fn answers_are_remembered_no_longer_than_they_last() {
    let listener = Receiver::answering(OK).await;
    let names = Names::always(&["127.0.0.1"]).await;
    let mut settings = names.settings(AddressPolicy::Any);
    settings.kept_for = Duration::ZERO;
    let sender = HttpSender::new(&settings).unwrap();
    let hook = at("brief.example", "http", &listener);
    for times in 1..=2 {
        delivers(&sender, &hook, 1).await;
        assert_eq!(names.asked().len(), 2 * times);
    }
}

fn asking(servers: &[&Names]) -> HttpSender {
    let mut settings = settings(AddressPolicy::Any);
    settings.name_servers = servers.iter().map(|server| server.address).collect();
    HttpSender::new(&settings).unwrap()
}

/// The server that knows the name answers later than the one that fails.
#[tokio::test]
async fn a_server_that_fails_first_does_not_hide_anothers_answer() {
    let listener = Receiver::answering(OK).await;
    let hook = at("hook.example", "http", &listener);
    let delay = Duration::from_millis(100);
    let knowing = Names::later(delay, |_| Some(Ok(parsed(&["127.0.0.1"])))).await;
    for code in [
        ResponseCode::ServFail,
        ResponseCode::Refused,
        ResponseCode::NotImp,
    ] {
        let failing = Names::failing(code).await;
        for servers in [[&failing, &knowing], [&knowing, &failing]] {
            delivers(&asking(&servers), &hook, 1).await;
        }
    }
}

#[tokio::test]
async fn the_first_nxdomain_is_believed() {
    let absent = Names::failing(ResponseCode::NXDomain).await;
    let knowing = Names::later(LONG, |_| Some(Ok(parsed(&["127.0.0.1"])))).await;
    let failing = Names::failing(ResponseCode::ServFail).await;
    let sender = asking(&[&failing, &knowing, &absent]);
    let attempted = send(&sender, "http://absent.example/").await;
    assert_eq!(attempted.outcome, failed(Failure::Dns));
    assert!(attempted.duration < Duration::from_secs(1), "{attempted:?}");
}

#[tokio::test]
async fn a_name_does_not_resolve_where_all_servers_fail() {
    let failing = Names::failing(ResponseCode::ServFail).await;
    let refusing = Names::failing(ResponseCode::Refused).await;
    let outcome = outcome(&asking(&[&failing, &refusing]), "http://hook.example/").await;
    assert_eq!(outcome, failed(Failure::Dns));
}
