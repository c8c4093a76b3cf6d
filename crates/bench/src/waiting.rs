//! Readers that wait at the journal for events that do not come.

use std::net::SocketAddr;

use tokio::task::JoinSet;

use crate::http::Connection;
use crate::scenario::{get, token_of};
use crate::seed::Seed;

/// The longest wait, in seconds.
const LONGEST: u64 = 30;

/// Readers of a server. Dropping them disconnects them.
pub(crate) struct Readers(JoinSet<anyhow::Result<()>>);

impl Readers {
    /// Lets `count` readers wait, of all sellers in turn. Their first waits differ, so that the end of a wait
    /// is not that of all.
    pub(crate) async fn open(seed: &Seed, server: SocketAddr, count: u64) -> anyhow::Result<Self> {
        let mut readers = JoinSet::new();
        for n in 0..count {
            let token = token_of(seed, n % seed.catalogue.sellers)?.to_owned();
            let mut reader = Connection::open(server).await?;
            read(&mut reader, &token, 0).await?;
            readers.spawn(async move {
                read(&mut reader, &token, 1 + n % LONGEST).await?;
                loop {
                    read(&mut reader, &token, LONGEST).await?;
                }
            });
        }
        Ok(Self(readers))
    }

    /// Disconnects them. Fails if one has failed.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.0.try_join_next().map_or(Ok(()), |ended| ended?)
    }
}

/// Reads what comes from now on.
async fn read(reader: &mut Connection, token: &str, wait: u64) -> anyhow::Result<()> {
    let mut request = Vec::new();
    let path = format!("/v1/events?since=2100-01-01T00:00:00Z&wait={wait}");
    get(&mut request, &path, token)?;
    reader.exchange(&request).await?.expect(200)?;
    Ok(())
}
