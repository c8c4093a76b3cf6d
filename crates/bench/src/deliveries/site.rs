//! What webhooks are measured on: a database with sellers, a subscription of each, and the receivers.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::receiver::Receivers;
use crate::back_office::Seller;
use crate::catalogue::{self, Catalogue};
use crate::cluster::Cluster;
use crate::http::Connection;
use crate::options::DeliveriesOptions;
use crate::program::Program;
use crate::progress::Progress;
use crate::server::Server;
use crate::stand::Stand;

/// What deliveries to this machine take.
const SETTINGS: [(&str, &str); 1] = [("SELLER_API__WEBHOOKS__ADDRESSES", "any")];
/// The event that is told.
pub(super) const EVENT: &str = "order.created";

/// A subscription: a lane of deliveries.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// Whose events.
    pub(super) seller: String,
    /// The subscription's id.
    pub(super) id: String,
    /// One of the seller's offers.
    pub(super) offer: String,
}

/// All that is needed.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) cluster: &'a Cluster,
    program: &'a Program,
    /// The database's name.
    pub(super) database: String,
    key: String,
    /// An operator's token.
    pub(super) operator: String,
    /// The receivers.
    pub(super) receivers: Receivers,
    /// Those whose receivers answer.
    pub(super) lanes: Vec<Lane>,
    /// One whose receiver does not.
    pub(super) dead: Lane,
}

impl<'a> Site<'a> {
    /// Fills a database through the product.
    pub(super) async fn raise(
        cluster: &'a Cluster,
        program: &'a Program,
        options: &DeliveriesOptions,
        progress: Progress,
    ) -> anyhow::Result<Self> {
        // So many that every seller has some, and all but the first one the same number.
        let catalogue = Catalogue::new(10 * options.subscriptions, options.subscriptions + 1);
        let stand = Stand::raise(cluster, program, "bench_deliveries", catalogue, progress).await?;
        let Stand {
            database,
            key,
            sellers,
            server,
            operator,
            ..
        } = stand;
        server.stop().await?;
        let receivers = Receivers::open(options.subscriptions).await?;
        let server = serve(cluster, program, &cluster.url(&database), &key).await?;
        let mut connection = Connection::open(server.public).await?;
        let mut lanes = Vec::new();
        let addresses = receivers.addresses.iter().chain([&receivers.dead]);
        for ((n, seller), address) in (0..).zip(&sellers).zip(addresses) {
            let url = format!("http://{address}/hooks");
            lanes.push(Lane {
                seller: seller.id.clone(),
                id: subscribe(&mut connection, seller, &url).await?,
                offer: catalogue::offer_id(catalogue.of_seller(n).start),
            });
        }
        server.stop().await?;
        let dead = lanes.pop().context("there is no subscription")?;
        let site = Self {
            cluster,
            program,
            database,
            key,
            operator,
            receivers,
            lanes,
            dead,
        };
        site.sql("vacuum (analyze)").await?;
        Ok(site)
    }

    /// Starts a server that delivers.
    pub(super) async fn server(&self) -> anyhow::Result<Server> {
        self.server_at(&self.cluster.url(&self.database)).await
    }

    /// The same over the database's URL by another way.
    pub(super) async fn server_at(&self, url: &str) -> anyhow::Result<Server> {
        serve(self.cluster, self.program, url, &self.key).await
    }

    /// Runs a statement, and gives its first column.
    pub(super) async fn sql(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        self.cluster.sql(&self.database, sql).await
    }

    /// Runs a query of one value.
    pub(super) async fn value(&self, sql: &str) -> anyhow::Result<String> {
        let value = self.sql(sql).await?.pop();
        value.with_context(|| format!("no value of {sql}"))
    }
}

async fn serve(cluster: &Cluster, program: &Program, url: &str, key: &str) -> anyhow::Result<Server> {
    let log = cluster.scratch("deliveries.log");
    Server::start_with(program, url, key, &log, &SETTINGS).await
}

async fn subscribe(connection: &mut Connection, seller: &Seller, url: &str) -> anyhow::Result<String> {
    let authorization = format!("Bearer {}", seller.token);
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Idempotency-Key", "bench-subscription"),
    ];
    let body = json!({"url": url, "events": [EVENT]});
    let (status, answer) = connection
        .json("POST", "/v1/webhooks", &headers, Some(&body))
        .await?;
    ensure!(status == 201, "no subscription (status {status}): {answer}");
    let id = answer.get("id").and_then(Value::as_str);
    Ok(id.context("the answer has no id")?.to_owned())
}
