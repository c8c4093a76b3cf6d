//! A name server on the loopback that knows the names of a test and no others (RFC 1035 §4.1), and may change its mind.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::net::UdpSocket;

const HEADER: usize = 12;
const TYPE_A: [u8; 2] = [0, 1];
const NO_SUCH_NAME: u8 = 3;

/// Names and their addresses.
type Names = HashMap<String, Vec<Ipv4Addr>>;

/// The server. It ends with the runtime of its test.
#[derive(Debug)]
pub struct NameServer {
    /// Where it answers.
    pub address: SocketAddr,
    known: Arc<Mutex<Names>>,
}

impl NameServer {
    /// Starts one that knows these names, each with its IPv4 addresses.
    pub async fn start(names: &[(&str, &[Ipv4Addr])]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("an address");
        let known = names
            .iter()
            .map(|(name, addresses)| ((*name).to_owned(), addresses.to_vec()));
        let known = Arc::new(Mutex::new(known.collect::<Names>()));
        let asked = Arc::clone(&known);
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut query).await {
                let answer = answer(
                    &asked.lock().unwrap_or_else(PoisonError::into_inner),
                    &query[..length],
                );
                if let Some(answer) = answer {
                    drop(socket.send_to(&answer, peer).await);
                }
            }
        });
        Self { address, known }
    }

    /// From now on the name has these addresses.
    pub fn knows(&self, name: &str, addresses: &[Ipv4Addr]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), addresses.to_vec());
    }

    /// From now on there is no such name.
    pub fn forgets(&self, name: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
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
    let found = known.get(&labels.join("."));
    let addresses = match found {
        Some(addresses) if question.ends_with(&[TYPE_A[0], TYPE_A[1], 0, 1]) => addresses.as_slice(),
        Some(_) | None => &[],
    };
    let code = if found.is_some() { 0 } else { NO_SUCH_NAME };
    let count = u8::try_from(addresses.len()).ok()?;
    // An authoritative answer to one question.
    let mut answer = [&query[..2], &[0x84, code, 0, 1, 0, count, 0, 0, 0, 0], question].concat();
    for address in addresses {
        // The name is the question's, the answer is good for no time at all.
        answer.extend([0xC0, 0x0C, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
