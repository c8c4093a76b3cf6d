//! `credentials.json`: everything that was seeded, in clear, for whoever plays with the sandbox and for tools.

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Credentials {
    /// The API, without a trailing slash.
    pub(crate) base_url: String,
    /// The marketplace's interface, without a trailing slash.
    pub(crate) backoffice_url: String,
    /// A token for it.
    pub(crate) backoffice_token: String,
    /// The database.
    pub(crate) database_url: String,
    /// At least three.
    pub(crate) sellers: Vec<SellerCredentials>,
}

/// A seeded seller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SellerCredentials {
    pub(crate) id: String,
    pub(crate) seller_no: i32,
    pub(crate) email: String,
    pub(crate) password: String,
    /// Holds the six scopes of v1.
    pub(crate) personal_token: String,
    pub(crate) examples: Examples,
    /// The first one is for the seller's own use.
    pub(crate) applications: Vec<ApplicationCredentials>,
}

/// Ids to try calls with; none where the seller has no such thing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Examples {
    pub(crate) offer: Option<String>,
    pub(crate) order: Option<String>,
    pub(crate) test_order: Option<String>,
    pub(crate) multi_seller_order: Option<String>,
}

/// A seeded application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplicationCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirect_uris: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shape_is_the_one_that_tools_rely_on() {
        let whole = json!({
            "base_url": "http://127.0.0.1:8080", "backoffice_url": "http://127.0.0.1:8081",
            "backoffice_token": "ps_op_x", "database_url": "postgres://x",
            "sellers": [{
                "id": "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e", "seller_no": 1, "email": "a@b.example",
                "password": "x", "personal_token": "ps_pt_x",
                "examples": {"offer": "x", "order": null, "test_order": null, "multi_seller_order": null},
                "applications": [{
                    "client_id": "psa_x", "client_secret": "pss_x", "name": "x", "status": "active",
                    "scopes": ["offers:read"], "redirect_uris": ["https://x.example"],
                }],
            }],
        });
        let read = serde_json::from_value::<Credentials>(whole.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), whole);
    }
}
