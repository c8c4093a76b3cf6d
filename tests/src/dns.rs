//! A DNS server on a loopback address that knows a test's names only (RFC 1035 §4.1). Its answers can change
//! or fail.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

use crate::serving::{lock, on_own_loopback};

const HEADER: usize = 12;
const TYPE_A: [u8; 2] = [0, 1];
const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
/// The port that the machine's resolver queries.
const USUAL_PORT: u16 = 53;

/// Answers by name. Other names do not exist.
type Names = HashMap<String, DnsAnswer>;

#[derive(Debug, Clone)]
enum DnsAnswer {
    Addresses(Vec<Ipv4Addr>),
    Failure,
    Nothing,
}

/// A running server. It stops with the runtime of its test.
#[derive(Debug)]
pub struct NameServer {
    pub address: SocketAddr,
    known: Arc<Mutex<Names>>,
}

impl NameServer {
    /// Starts a server that knows these names, each with its IPv4 addresses.
    pub async fn start(names: &[(&str, &[Ipv4Addr])]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        Self::over(socket, names)
    }

    /// Starts a server on the port that the machine's resolver queries, at a separate address. `None` if the
    /// account may not bind it, or the port is taken at every address.
    pub async fn at_the_usual_port(names: &[(&str, &[Ipv4Addr])]) -> Option<Self> {
        match on_own_loopback(async |address| UdpSocket::bind((address, USUAL_PORT)).await).await {
            Ok(socket) => Some(Self::over(socket?, names)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(error) => panic!("no name server: {error}"),
        }
    }

    fn over(socket: UdpSocket, names: &[(&str, &[Ipv4Addr])]) -> Self {
        let address = socket.local_addr().expect("an address");
        let known = names
            .iter()
            .map(|(name, addresses)| ((*name).to_owned(), DnsAnswer::Addresses(addresses.to_vec())));
        let known = Arc::new(Mutex::new(known.collect::<Names>()));
        let asked = Arc::clone(&known);
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut query).await {
                let answer = answer(&lock(&asked), &query[..length]);
                if let Some(answer) = answer {
                    drop(socket.send_to(&answer, peer).await);
                }
            }
        });
        Self { address, known }
    }

    /// Sets the addresses of a name.
    pub fn knows(&self, name: &str, addresses: &[Ipv4Addr]) {
        self.set(name, DnsAnswer::Addresses(addresses.to_vec()));
    }

    /// Removes a name.
    pub fn forgets(&self, name: &str) {
        lock(&self.known).remove(name);
    }

    /// From now on queries for the name fail (SERVFAIL).
    pub fn fails_at(&self, name: &str) {
        self.set(name, DnsAnswer::Failure);
    }

    /// From now on queries for the name get no answer.
    pub fn is_silent_about(&self, name: &str) {
        self.set(name, DnsAnswer::Nothing);
    }

    fn set(&self, name: &str, answer: DnsAnswer) {
        lock(&self.known).insert(name.to_owned(), answer);
    }
}

fn answer(known: &Names, query: &[u8]) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let question = query.get(HEADER..at + 4)?;
    let (code, addresses) = match known.get(&labels.join(".")) {
        Some(DnsAnswer::Addresses(addresses)) if question.ends_with(&[TYPE_A[0], TYPE_A[1], 0, 1]) => {
            (NO_ERROR, addresses.as_slice())
        }
        Some(DnsAnswer::Addresses(_)) => (NO_ERROR, [].as_slice()),
        Some(DnsAnswer::Failure) => (SERVER_FAILURE, [].as_slice()),
        Some(DnsAnswer::Nothing) => return None,
        None => (NO_SUCH_NAME, [].as_slice()),
    };
    let count = u8::try_from(addresses.len()).ok()?;
    // An authoritative answer to one question.
    let mut answer = [&query[..2], &[0x84, code, 0, 1, 0, count, 0, 0, 0, 0], question].concat();
    for address in addresses {
        // The name points to the question's; the TTL is zero.
        answer.extend([0xC0, 0x0C, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
