//! What the database holds of secrets: hashes alone.

use std::fmt::Write as _;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;

use crate::world;

/// Every row of every table, as text.
async fn everything(client: &tokio_postgres::Client) -> String {
    let tables = "select quote_ident(relname) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace";
    let mut text = String::new();
    for table in client.query(tables, &[]).await.unwrap() {
        let rows = format!("select t::text from {} t", table.get::<_, String>(0));
        for row in client.query(&rows, &[]).await.unwrap() {
            writeln!(text, "{}", row.get::<_, String>(0)).unwrap();
        }
    }
    text
}

#[tokio::test]
async fn tokens_and_secrets_are_kept_as_hashes_and_passwords_as_argon2id() {
    let world = world().await;
    let password = "correct horse battery";
    let body = json!({"name": "K", "email": "hashed@shop.example", "password": password});
    world.office_post("/sellers", &body).await.expect(201);
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let personal = world.personal_token(&seller, &["offers:read"]).await.token;
    let access = world.token(&application).await;
    let text = everything(&world.database.connect().await).await;
    assert!(text.contains("hashed@shop.example") && text.contains("$argon2id$"));
    assert!(!text.contains(password));
    for secret in [
        &application.client_secret,
        &personal,
        &access,
        &world.server.operator_token,
    ] {
        assert!(!text.contains(secret.as_str()), "a secret lies in the database");
        let prefix = ["pss_", "ps_pt_", "ps_at_", "ps_op_"]
            .into_iter()
            .find(|prefix| secret.starts_with(prefix));
        let random = &secret[prefix.expect("a known prefix").len()..];
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(random)
            .expect("the rest of a secret is base64url");
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
        };
        assert!(bytes.len() >= 32, "256 bits are random");
        assert!(
            !text.contains(&hex(&bytes[bytes.len() - 32..])),
            "the random part of a secret lies in the database"
        );
    }
}
