//! DNS servers on loopback addresses, and the results of their answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use testkit::{HttpServer, answer_all};
use tokio::{net::UdpSocket, time::sleep};
use webhooks::{AddressPolicy, AttemptFailure, HostCheck as _, HostRefused, Outcome};

use super::support::{LONG, OK, answering, clock, delivers, failed, outcome, send, settings, url};
use crate::{HttpSender, SenderSettings};

/// Addresses of both families, an error, or no answer.
type Answer = Option<Result<Vec<IpAddr>, ResponseCode>>;

/// A DNS server with a function that maps the number of earlier queries of a record type to an answer.
struct NameServer {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<(String, RecordType)>>>,
}

impl NameServer {
    async fn start(zone: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        Self::delayed(Duration::ZERO, zone).await
    }

    async fn delayed(delay: Duration, zone: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let address = socket.local_addr().unwrap();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&queries);
        tokio::spawn(async move {
            let mut datagram = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut datagram).await.unwrap();
                let query = Message::from_vec(&datagram[..length]).unwrap();
                let question = &query.queries[0];
                let (name, kind) = (question.name().to_ascii(), question.query_type());
                let before = {
                    let mut queries = recorded.lock().unwrap();
                    queries.push((name, kind));
                    queries.iter().filter(|query| query.1 == kind).count() - 1
                };
                let Some(answer) = zone(before) else { continue };
                let (answer, socket) = (message(&query, answer), Arc::clone(&socket));
                tokio::spawn(async move {
                    sleep(delay).await;
                    socket.send_to(&answer, from).await.unwrap();
                });
            }
        });
        Self { address, queries }
    }

    async fn always(addresses: &[&str]) -> Self {
        let addresses = parsed(addresses);
        Self::start(move |_| Some(Ok(addresses.clone()))).await
    }

    /// Resolves to one address for this number of queries of a type, then to the other for as many, and so
    /// on.
    async fn alternating(first: &'static str, then: &'static str, count: usize) -> Self {
        Self::start(move |before| {
            let address = if before % (2 * count) < count { first } else { then };
            Some(Ok(parsed(&[address])))
        })
        .await
    }

    async fn failing(code: ResponseCode) -> Self {
        Self::start(move |_| Some(Err(code))).await
    }

    fn queries(&self) -> Vec<(String, RecordType)> {
        let mut queries = self.queries.lock().unwrap().clone();
        queries.sort();
        queries
    }

    fn sender(&self, policy: AddressPolicy) -> HttpSender {
        self.sender_with(policy, |_| {})
    }

    fn sender_with(&self, policy: AddressPolicy, change: impl FnOnce(&mut SenderSettings)) -> HttpSender {
        let mut settings = settings(policy);
        settings.name_servers = vec![self.address];
        change(&mut settings);
        HttpSender::new(&settings, clock()).unwrap()
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

/// A webhook URL with this name and a receiver's port.
fn at(name: &str, scheme: &str, receiver: &HttpServer) -> String {
    format!("{scheme}://{name}:{}/hook", receiver.address.port())
}

/// A receiver with the same port at another address.
async fn beside(receiver: &HttpServer) -> HttpServer {
    let address = ("127.0.0.2", receiver.address.port());
    HttpServer::start_at(address, |stream| answer_all(stream, OK)).await
}

/// Asserts that no connection is made, neither by a delivery nor by the check of a new subscription.
async fn is_refused(sender: &HttpSender, hook: &str) {
    let outcome = outcome(sender, hook).await;
    assert_eq!(outcome, failed(AttemptFailure::AddressRefused), "{hook}");
    assert_eq!(sender.check(&url(hook)).await, Err(HostRefused), "{hook}");
}

#[tokio::test]
async fn a_host_with_any_address_that_is_not_public_gets_no_connection() {
    let receiver = answering(OK).await;
    for addresses in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "1.1.1.1 127.0.0.1",
        "127.0.0.1 1.1.1.1",
        "1.1.1.1 ::1",
        "2606:4700:4700::1111 127.0.0.1",
        "1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 192.168.0.1",
    ] {
        let names = NameServer::always(&addresses.split(' ').collect::<Vec<_>>()).await;
        let sender = names.sender(AddressPolicy::Public);
        for name in ["hook.example", "alias.example"] {
            is_refused(&sender, &at(name, "https", &receiver)).await;
        }
    }
    // Literals, local names and plain HTTP are refused without a query.
    let names = NameServer::always(&["1.1.1.1"]).await;
    let sender = names.sender(AddressPolicy::Public);
    for host in [
        "127.0.0.1",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
    ] {
        is_refused(&sender, &at(host, "https", &receiver)).await;
    }
    is_refused(&sender, "http://hook.example/").await;
    assert_eq!((receiver.connections(), names.queries()), (0, Vec::new()));
}

/// Only the first answer is checked, so a connection to the second one would show that names are resolved
/// twice.
#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let denied = answering(OK).await;
    let allowed = beside(&denied).await;
    let names = NameServer::alternating("127.0.0.2", "127.0.0.1", 1).await;
    let sender = names.sender_with(AddressPolicy::Any, |settings| {
        settings.rules.deny = vec!["127.0.0.1/32".parse().unwrap()];
        settings.max_idle_connections = 0;
    });
    let hook = at("rebinding.example", "http", &denied);
    for _ in 0..5 {
        delivers(&sender, &hook, 1).await;
        assert_eq!(
            outcome(&sender, &hook).await,
            failed(AttemptFailure::AddressRefused)
        );
    }
    assert_eq!((denied.connections(), allowed.connections()), (0, 5));
    let of_kind = |kind| names.queries().iter().filter(|query| query.1 == kind).count();
    assert_eq!((of_kind(RecordType::A), of_kind(RecordType::AAAA)), (10, 10));
}

#[tokio::test]
async fn an_idle_connection_is_used_only_while_its_name_resolves_to_its_address() {
    let one = answering(OK).await;
    let other = beside(&one).await;
    let names = NameServer::alternating("127.0.0.1", "127.0.0.2", 2).await;
    let sender = names.sender(AddressPolicy::Any);
    delivers(&sender, &at("moving.example", "http", &one), 4).await;
    assert_eq!((one.connections(), other.connections()), (1, 1));
}

#[tokio::test]
async fn another_address_is_tried_where_one_refuses_and_answers_are_cached_no_longer_than_they_last() {
    let receiver = answering(OK).await;
    let names = NameServer::always(&["127.0.0.9", "127.0.0.1"]).await;
    let sender = names.sender_with(AddressPolicy::Any, |settings| {
        settings.max_connection_age = Duration::ZERO;
    });
    for times in 1..=2 {
        delivers(&sender, &at("two.example", "http", &receiver), 1).await;
        assert_eq!(names.queries().len(), 2 * times);
    }
}

#[tokio::test]
async fn names_are_absolute_and_queried_once() {
    for (code, name) in [
        (ResponseCode::NoError, "single"),
        (ResponseCode::NoError, "nothing.example."),
        (ResponseCode::NXDomain, "absent.example"),
        (ResponseCode::NXDomain, "xn--w-uga1v8h.example"),
    ] {
        let names = NameServer::failing(code).await;
        let outcome = outcome(&names.sender(AddressPolicy::Public), &format!("https://{name}/")).await;
        assert_eq!(outcome, failed(AttemptFailure::Dns));
        let absolute = format!("{}.", name.trim_end_matches('.'));
        let expected = [(absolute.clone(), RecordType::A), (absolute, RecordType::AAAA)];
        assert_eq!(names.queries(), expected);
    }
}

#[tokio::test]
async fn of_several_servers_the_first_usable_answer_counts() {
    let receiver = answering(OK).await;
    let hook = at("hook.example", "http", &receiver);
    let delayed = async |delay| NameServer::delayed(delay, |_| Some(Ok(parsed(&["127.0.0.1"])))).await;
    // The server that knows the name answers later than the one that fails.
    let (late, too_late) = (delayed(Duration::from_millis(100)).await, delayed(LONG).await);
    let failing = NameServer::failing(ResponseCode::ServFail).await;
    let refusing = NameServer::failing(ResponseCode::Refused).await;
    let lacking = NameServer::failing(ResponseCode::NotImp).await;
    let absent = NameServer::failing(ResponseCode::NXDomain).await;
    for (servers, is_found) in [
        (vec![&failing, &late], true),
        (vec![&late, &failing], true),
        (vec![&refusing, &late], true),
        (vec![&lacking, &late], true),
        (vec![&failing, &too_late, &absent], false),
        (vec![&failing, &refusing], false),
    ] {
        let sender = failing.sender_with(AddressPolicy::Any, |settings| {
            settings.name_servers = servers.iter().map(|server| server.address).collect();
            settings.resolve_timeout = LONG * 2;
        });
        let attempted = send(&sender, &hook).await;
        let expected = if is_found {
            Outcome::Answered(200)
        } else {
            failed(AttemptFailure::Dns)
        };
        assert_eq!(attempted.outcome, expected);
        assert!(attempted.duration < LONG, "{attempted:?}");
    }
}
