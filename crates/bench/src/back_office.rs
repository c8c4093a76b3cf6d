//! Filling through the product's own ways: sellers and applications by the back office, tokens by the token endpoint.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::server::Server;

/// What the applications may do.
const SCOPES: [&str; 5] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:write",
];

/// A registered seller with an application of its own.
#[derive(Clone, Debug)]
pub(crate) struct Seller {
    /// The seller's id.
    pub(crate) id: String,
    /// An access token with all scopes that a load needs.
    pub(crate) token: String,
    /// The application.
    pub(crate) client_id: String,
    /// The application's secret.
    pub(crate) client_secret: String,
}

/// What an import told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Imported {
    /// New offers.
    pub(crate) created: u64,
}

/// An operator's and a client's connections to a server.
#[derive(Debug)]
pub(crate) struct BackOffice {
    operator: Connection,
    client: Connection,
    authorization: String,
}

impl BackOffice {
    /// Connects with an operator token.
    pub(crate) async fn open(server: &Server, operator_token: &str) -> anyhow::Result<Self> {
        Ok(Self {
            operator: Connection::open(server.back_office).await?,
            client: Connection::open(server.public).await?,
            authorization: format!("Bearer {operator_token}"),
        })
    }

    /// Registers the seller number `number` with an application, and gets an access token for it.
    pub(crate) async fn register(&mut self, number: u64) -> anyhow::Result<Seller> {
        let seller =
            json!({"name": format!("Seller {number}"), "email": format!("seller-{number}@sellers.example")});
        let seller = self.post("/sellers", &seller).await?;
        let id = text(&seller, "id")?;
        let application = json!({
            "name": format!("Bench {number}"), "documentation_url": "https://docs.example/bench", "purpose": "own_use",
            "client_type": "confidential", "redirect_uris": [], "scopes": SCOPES, "accept_terms": true,
        });
        let application = self
            .post(&format!("/sellers/{id}/applications"), &application)
            .await?;
        let (client_id, client_secret) = (
            text(&application, "client_id")?,
            text(&application, "client_secret")?,
        );
        let grant = json!({
            "grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret,
        });
        let (status, token) = self
            .client
            .json("POST", "/oauth/token", &[], Some(&grant))
            .await?;
        ensure!(status == 200, "no token (status {status}): {token}");
        Ok(Seller {
            id,
            token: text(&token, "access_token")?,
            client_id,
            client_secret,
        })
    }

    /// Places an order that tries things out, of one piece of an offer.
    pub(crate) async fn place_order(&mut self, seller: &str, offer: &str) -> anyhow::Result<()> {
        let order = json!({
            "is_test": true, "items": [{"seller_id": seller, "offer_id": offer, "quantity": 1}],
        });
        self.post("/orders", &order).await?;
        Ok(())
    }

    /// Imports a file of NDJSON lines, streamed as one request.
    pub(crate) async fn import(&mut self, seller: &Seller, file: &Path) -> anyhow::Result<Imported> {
        let path = format!("/sellers/{}/offers:import", seller.id);
        let headers = [("Authorization", self.authorization.as_str())];
        let (status, report) = self
            .operator
            .upload(&path, &headers, "application/x-ndjson", file)
            .await?;
        ensure!(status == 200, "the import failed (status {status}): {report}");
        let count = |name| {
            report
                .get(name)
                .and_then(Value::as_u64)
                .context("the import's report has another shape")
        };
        ensure!(
            count("rejected_total")? == 0,
            "the import rejected lines: {report}"
        );
        Ok(Imported {
            created: count("created")?,
        })
    }

    async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let headers = [("Authorization", self.authorization.as_str())];
        let (status, answer) = self.operator.json("POST", path, &headers, Some(body)).await?;
        ensure!(status == 201, "POST {path} was answered {status}: {answer}");
        Ok(answer)
    }
}

fn text(object: &Value, member: &str) -> anyhow::Result<String> {
    let value = object.get(member).and_then(Value::as_str);
    value
        .map(str::to_owned)
        .with_context(|| format!("the answer has no {member}"))
}
