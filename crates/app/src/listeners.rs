//! The addresses that the program listens at.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use anyhow::{Context as _, anyhow};
use tokio::net::TcpSocket;

/// Connections that the kernel keeps until they are accepted; it has a bound of its own (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// An address that is taken, at which nobody listens yet.
pub(crate) struct Reserved {
    socket: TcpSocket,
    address: SocketAddr,
}

/// Takes the addresses of both listeners; needs a runtime. Says what to do where one is taken: `flags` choose others.
pub(crate) fn reserve(
    public: SocketAddr,
    backoffice: SocketAddr,
    flags: [&str; 2],
) -> anyhow::Result<(Reserved, Reserved)> {
    let [public_flag, backoffice_flag] = flags;
    Ok((
        Reserved::take(public, public_flag)?,
        Reserved::take(backoffice, backoffice_flag)?,
    ))
}

impl Reserved {
    /// Takes one address, which `flag` chooses; needs a runtime.
    pub(crate) fn take(address: SocketAddr, flag: &str) -> anyhow::Result<Self> {
        Self::try_take(address).map_err(|error| explained(error, address, flag))
    }

    fn try_take(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // Connections of an earlier run that are still closing must not stop this one.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// The address, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to listen.
    pub(crate) fn listen(self) -> anyhow::Result<TcpListener> {
        let address = self.address;
        let listener = self
            .socket
            .listen(BACKLOG)
            .and_then(tokio::net::TcpListener::into_std);
        listener.with_context(|| format!("cannot listen at {address}"))
    }
}

fn explained(error: io::Error, address: SocketAddr, flag: &str) -> anyhow::Error {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "port {port} of {} is taken by another program: end that one, or choose another port with {flag} (0 takes a \
             free one)",
            address.ip()
        ),
        io::ErrorKind::PermissionDenied => {
            anyhow!("this user may not listen at {address}: choose a port from 1024 on with {flag}")
        }
        io::ErrorKind::AddrNotAvailable => anyhow!(
            "this machine has no address {}: choose one of its own with {flag}, or 0.0.0.0 for all that it has",
            address.ip()
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen at {address} ({flag})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [&str; 2] = ["--port", "--backoffice-port"];

    #[tokio::test]
    async fn a_taken_port_is_named_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = reserve(address, "127.0.0.1:0".parse().unwrap(), FLAGS)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(&format!("port {}", address.port())), "{error}");
        assert!(error.contains("with --port"), "{error}");
    }

    #[tokio::test]
    async fn port_0_takes_two_free_ports_at_which_nobody_is_heard_before_it_is_time() {
        let any = "127.0.0.1:0".parse().unwrap();
        let (public, backoffice) = reserve(any, any, FLAGS).unwrap();
        let address = public.address();
        assert_ne!(address.port(), backoffice.address().port());
        assert!(std::net::TcpStream::connect(address).is_err());
        let listener = public.listen().unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
        assert!(std::net::TcpStream::connect(address).is_ok());
    }
}
