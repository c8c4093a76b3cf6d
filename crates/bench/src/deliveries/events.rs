//! Events at an even rate: orders that the marketplace places.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::site::{Lane, Site};
use crate::back_office::BackOffice;
use crate::server::Server;

/// Connections to the back office: enough that none waits for another's commit.
const CONNECTIONS: u32 = 8;

/// Where events come from.
#[derive(Debug)]
pub(super) struct Sources(Vec<Arc<Mutex<BackOffice>>>);

impl Sources {
    /// Connects to a server.
    pub(super) async fn open(site: &Site<'_>, server: &Server) -> anyhow::Result<Self> {
        let mut sources = Vec::new();
        for _ in 0..CONNECTIONS {
            let back_office = BackOffice::open(server, &site.operator).await?;
            sources.push(Arc::new(Mutex::new(back_office)));
        }
        Ok(Self(sources))
    }

    /// Places so many orders a second, each of another seller than the one before it, for so long.
    pub(super) async fn flow(&self, site: &Site<'_>, rate: u64, duration: Duration) -> anyhow::Result<()> {
        let each = Duration::from_secs(u64::from(CONNECTIONS)) / u32::try_from(rate)?;
        let mut tasks = JoinSet::new();
        for (n, source) in (0..).zip(&self.0) {
            let lanes = site.lanes.iter().cycle().skip(usize::try_from(n)?);
            let lanes = lanes.step_by(self.0.len()).take(site.lanes.len());
            let lanes: Vec<Lane> = lanes.cloned().collect();
            let source = Arc::clone(source);
            let (after, count) = (each / CONNECTIONS * n, duration.as_nanos() / each.as_nanos());
            tasks.spawn(async move {
                let mut source = source.lock().await;
                tokio::time::sleep(after).await;
                place(&mut source, &lanes, each, usize::try_from(count)?).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.context("a connection's task ended early")??;
        }
        Ok(())
    }
}

/// Places so many orders, one each time. What is late is made up for: the rate is kept on average.
async fn place(
    back_office: &mut BackOffice,
    lanes: &[Lane],
    each: Duration,
    count: usize,
) -> anyhow::Result<()> {
    let mut ticks = interval(each);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for lane in lanes.iter().cycle().take(count) {
        ticks.tick().await;
        back_office.place_order(&lane.seller, &lane.offer).await?;
    }
    Ok(())
}
