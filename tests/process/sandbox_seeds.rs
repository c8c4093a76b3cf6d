//! What the sandbox is seeded with, and the shape of `credentials.json`.

use std::collections::BTreeSet;

use blackbox::Sandbox;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Answer, Client};

use crate::PROGRAM;

const SCOPES: [&str; 6] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "settings:read",
    "settings:write",
    "shipments:write",
];

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn has_the_shape(credentials: &Value) {
    assert_eq!(
        keys(credentials),
        [
            "backoffice_token",
            "backoffice_url",
            "base_url",
            "database_url",
            "sellers"
        ]
        .into()
    );
    assert!(text(&credentials["base_url"]).starts_with("http://127.0.0.1:"));
    assert!(!text(&credentials["base_url"]).ends_with('/'));
    assert!(text(&credentials["backoffice_url"]).starts_with("http://127.0.0.1:"));
    assert!(text(&credentials["backoffice_token"]).starts_with("ps_op_"));
    assert!(text(&credentials["database_url"]).starts_with("postgres"));
    let sellers = list(&credentials["sellers"]);
    assert!(sellers.len() >= 3);
    for seller in sellers {
        let fields = [
            "applications",
            "email",
            "examples",
            "id",
            "password",
            "personal_token",
            "seller_no",
        ];
        assert_eq!(keys(seller), fields.into());
        assert_eq!(
            keys(&seller["examples"]),
            ["multi_seller_order", "offer", "order", "test_order"].into()
        );
        assert!(
            seller["seller_no"].is_i64()
                && text(&seller["email"]).contains('@')
                && !text(&seller["password"]).is_empty()
        );
        assert!(text(&seller["personal_token"]).starts_with("ps_pt_"));
        for application in list(&seller["applications"]) {
            let fields = [
                "client_id",
                "client_secret",
                "name",
                "redirect_uris",
                "scopes",
                "status",
            ];
            assert_eq!(keys(application), fields.into());
            assert!(text(&application["client_id"]).starts_with("psa_"));
            let secret = &application["client_secret"];
            assert!(is_public(application) || text(secret).starts_with("pss_"));
            let [redirect] = list(&application["redirect_uris"]).as_slice() else {
                panic!("one redirect address: {application}");
            };
            assert!(text(redirect).starts_with("https://") && text(redirect).contains(".example/"));
        }
    }
}

/// It keeps no secret, and goes through consent alone.
fn is_public(application: &Value) -> bool {
    application["client_secret"].is_null()
}

async fn token(sandbox: &Sandbox, application: &Value) -> Answer {
    let body = json!({
        "grant_type": "client_credentials",
        "client_id": application["client_id"],
        "client_secret": application["client_secret"],
    });
    let url = format!("{}/oauth/token", text(&sandbox.credentials["base_url"]));
    Client::new().post(&url).json(&body).send().await
}

fn sorted(scopes: &Value) -> Vec<&str> {
    let mut names: Vec<_> = list(scopes).iter().map(text).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn sellers_applications_and_offers_are_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join("data"), &[], &[]).await;
    let credentials = &sandbox.credentials;
    has_the_shape(credentials);
    for seller in list(&credentials["sellers"]) {
        let personal = text(&seller["personal_token"]);
        let me = sandbox.get(personal, "/v1/me").await.expect(200).json();
        assert_eq!(
            me["seller"],
            json!({"id": seller["id"], "seller_no": seller["seller_no"]})
        );
        assert_eq!(
            (sorted(&me["scopes"]), &me["token"]["kind"]),
            (SCOPES.into(), &json!("personal"))
        );
        for application in list(&seller["applications"]).iter().filter(|own| !is_public(own)) {
            let status = text(&application["status"]);
            let answer = token(&sandbox, application).await;
            assert_eq!(
                answer.status,
                if status == "suspended" { 401 } else { 200 },
                "{application}"
            );
            if status == "suspended" {
                continue;
            }
            let access = answer.json()["access_token"].as_str().unwrap().to_owned();
            let me = sandbox.get(&access, "/v1/me").await.expect(200).json();
            assert_eq!(
                me["app"],
                json!({"client_id": application["client_id"], "name": application["name"]})
            );
            assert_eq!(sorted(&me["scopes"]), sorted(&application["scopes"]));
        }
        let own = &list(&seller["applications"])[0];
        assert!(
            SCOPES.iter().all(|scope| sorted(&own["scopes"]).contains(scope)),
            "{own}"
        );
    }
    let first = &credentials["sellers"][0];
    let statuses: BTreeSet<_> = list(&first["applications"])
        .iter()
        .map(|app| text(&app["status"]))
        .collect();
    assert_eq!(statuses, ["active", "pending", "suspended"].into());
    assert_eq!(list(&first["applications"][0]["scopes"]).len(), 17);
    let public: Vec<_> = list(&first["applications"])
        .iter()
        .filter(|app| is_public(app))
        .collect();
    assert!(
        matches!(public[..], [one] if one["status"] == "active"),
        "{public:?}"
    );
    let example = text(&first["examples"]["offer"]);
    let personal = text(&first["personal_token"]);
    sandbox
        .get(personal, &format!("/v1/offers/{example}"))
        .await
        .expect(200);
    let offers = sandbox
        .get(personal, "/v1/offers?limit=200")
        .await
        .expect(200)
        .json();
    let offers = list(&offers["items"]);
    let statuses: BTreeSet<_> = offers.iter().map(|offer| text(&offer["status"])).collect();
    assert_eq!(statuses, ["draft", "proposed", "published", "rejected"].into());
    for field in ["price", "stock"] {
        assert!(
            offers.iter().any(|offer| offer[field].is_null()),
            "an offer without {field}"
        );
        assert!(
            offers.iter().any(|offer| !offer[field].is_null()),
            "an offer with {field}"
        );
    }
    let office = format!("{}/sellers", text(&credentials["backoffice_url"]));
    Client::new()
        .get(&office)
        .bearer(text(&credentials["backoffice_token"]))
        .send()
        .await
        .expect(200);
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
}
