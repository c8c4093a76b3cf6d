//! A server's own metrics, as it tells them (`/metrics` of the back office).

use std::net::SocketAddr;

use anyhow::ensure;

use crate::http::Connection;

/// What was told (Prometheus text format: `name{labels} value`).
#[derive(Clone, Debug)]
pub(crate) struct Metrics(String);

impl Metrics {
    /// Asks the server.
    pub(crate) async fn of(back_office: SocketAddr) -> anyhow::Result<Self> {
        let mut connection = Connection::open(back_office).await?;
        let request = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\n\r\n";
        let response = connection.exchange(request).await?;
        ensure!(
            response.status == 200,
            "/metrics was answered {}",
            response.status
        );
        Ok(Self(String::from_utf8_lossy(response.body).into_owned()))
    }

    /// The sum of all values whose name and labels begin so.
    pub(crate) fn sum(&self, beginning: &str) -> f64 {
        let values = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(beginning)?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        });
        values.sum()
    }

    #[cfg(test)]
    pub(crate) fn told(text: &str) -> Self {
        Self(text.to_owned())
    }
}
