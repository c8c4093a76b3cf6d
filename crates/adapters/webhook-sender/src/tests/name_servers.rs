//! Several name servers, of which some fail: what another one knows is found, in whatever order they answer.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hickory_resolver::proto::{
    op::{Message, OpCode, ResponseCode},
    rr::{RData, Record, RecordType},
};
use tokio::{net::UdpSocket, task::AbortHandle, time::sleep};
use webhooks::{AddressPolicy, Failure, Outcome};

use super::{
    receiver::{OK, Receiver},
    support::{LONG, failed, outcome, send, settings},
};
use crate::HttpSender;

/// How long after the others the one that knows answers: no race is won by chance.
const LATER: Duration = Duration::from_millis(100);

/// A server that says the same of each name, a while after it is asked.
struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

impl Server {
    async fn start(says: Result<IpAddr, ResponseCode>, after: Duration) -> Self {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut datagram = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut datagram).await.unwrap();
                let answer = answer(&datagram[..length], says);
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    sleep(after).await;
                    socket.send_to(&answer, from).await.unwrap();
                });
            }
        });
        Self {
            address,
            task: task.abort_handle(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(query: &[u8], says: Result<IpAddr, ResponseCode>) -> Vec<u8> {
    let query = Message::from_vec(query).unwrap();
    let question = query.queries[0].clone();
    let mut message = Message::response(query.metadata.id, OpCode::Query);
    message.add_query(question.clone());
    match says {
        Ok(address) if question.query_type() == RecordType::A => {
            message.add_answer(Record::from_rdata(
                question.name().clone(),
                60,
                RData::from(address),
            ));
        }
        Ok(_) => {}
        Err(code) => message.metadata.response_code = code,
    }
    message.to_vec().unwrap()
}

fn asking(servers: impl IntoIterator<Item = SocketAddr>) -> HttpSender {
    let mut settings = settings(AddressPolicy::Any);
    settings.name_servers = servers.into_iter().collect();
    HttpSender::new(&settings).unwrap()
}

#[tokio::test]
async fn a_server_that_fails_first_hides_nothing_that_another_one_knows() {
    let listener = Receiver::answering(OK).await;
    let knows = Server::start(Ok(Ipv4Addr::LOCALHOST.into()), LATER).await;
    for code in [
        ResponseCode::ServFail,
        ResponseCode::Refused,
        ResponseCode::NotImp,
    ] {
        let fails = Server::start(Err(code), Duration::ZERO).await;
        for servers in [[fails.address, knows.address], [knows.address, fails.address]] {
            let sender = asking(servers);
            for host in ["hook.example", "other.example"] {
                let hook = format!("http://{host}:{}/hook", listener.address.port());
                assert_eq!(outcome(&sender, &hook).await, Outcome::Answered(200), "{code}");
            }
        }
    }
}

#[tokio::test]
async fn the_first_server_that_knows_that_there_is_no_such_name_is_believed() {
    let absent = Server::start(Err(ResponseCode::NXDomain), Duration::ZERO).await;
    let knows = Server::start(Ok(Ipv4Addr::LOCALHOST.into()), LONG).await;
    let fails = Server::start(Err(ResponseCode::ServFail), Duration::ZERO).await;
    let sender = asking([fails.address, knows.address, absent.address]);
    let attempted = send(&sender, "http://absent.example/").await;
    assert_eq!(attempted.outcome, failed(Failure::Dns));
    assert!(
        attempted.duration < Duration::from_secs(1),
        "{:?}",
        attempted.duration
    );
}

#[tokio::test]
async fn where_all_fail_the_name_does_not_resolve() {
    let fail = |code| Server::start(Err(code), Duration::ZERO);
    let servers = [
        fail(ResponseCode::ServFail).await,
        fail(ResponseCode::Refused).await,
    ];
    let sender = asking(servers.iter().map(|server| server.address));
    assert_eq!(
        outcome(&sender, "http://hook.example/").await,
        failed(Failure::Dns)
    );
}
