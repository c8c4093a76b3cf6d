//! Secrets in the database and the log: only hashes and sealed values.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use blackbox::{Asking, EVENTS, HOOK_SCOPES, PASSWORD, Pair, Receiver, World, hex, keyed, text};
use reqwest::Method;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// Spellings of a secret: as it is, its random part, and each of these in hexadecimal and base64.
fn spellings(secret: &str) -> Vec<String> {
    let prefixes = "ps_wh_ ps_at_ ps_pt_ ps_op_ ps_rt_ ps_ac_ ps_se_ ps_ln_ pss_";
    let mut prefixes = prefixes.split(' ');
    let random = prefixes
        .find_map(|prefix| secret.strip_prefix(prefix))
        .unwrap_or(secret);
    let base64url = random.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(base64url).unwrap_or_default();
    let mut spellings = Vec::new();
    for text in [secret, random] {
        spellings.push(text.to_owned());
        spellings.push(hex(text.as_bytes()));
        spellings.push(BASE64_STANDARD_NO_PAD.encode(text));
        spellings.push(BASE64_URL_SAFE_NO_PAD.encode(text));
    }
    if decoded.len() >= 16 {
        // The unguessable part is at the end.
        let tail = &decoded[decoded.len().saturating_sub(32)..];
        spellings.push(hex(tail));
        spellings.push(BASE64_STANDARD_NO_PAD.encode(tail));
    }
    spellings
}

#[track_caller]
pub(crate) fn holds_none(place: &str, text: &str, secrets: &[(&str, String)]) {
    for (what, secret) in secrets {
        assert!(secret.len() >= 16, "{what} is long enough to be looked for");
        for (n, spelling) in spellings(secret).iter().enumerate() {
            assert!(!text.contains(spelling), "{what} is in {place}, in spelling {n}");
        }
    }
}

/// Issues every kind of secret and uses it where possible; some are rejected on purpose.
pub(crate) async fn busy(world: &World, keys: &str) -> Vec<(&'static str, String)> {
    let (mut member, receiver) = (world.member().await, Receiver::start().await);
    let own = world.application(&member.seller, &HOOK_SCOPES).await;
    let access = world.token(&own).await;
    let body = json!({"url": receiver.url, "events": EVENTS});
    let subscribing = keyed(world.subscribing(&access, &body), "remembered");
    let hook = subscribing.send().await.expect(201).json();
    world.any_offer(&member.seller, json!({})).await;
    let partner = world.partner(&member.seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    let fresh = world.refreshed(&partner, &pair.refresh).await;
    let csrf = member.browser.form("/panel/account").await;
    let unused = world.asking(&partner, "offers:read");
    let used = world.asking(&partner, "offers:read");
    let code = world.code(&mut member.browser, &used).await;
    Pair::of(world.exchange(&partner, &used, &code).await);
    // Rejected credentials are not stored or logged either.
    let mut astray = world.asking(&partner, "offers:read");
    let lost = world.code(&mut member.browser, &astray).await;
    astray.verifier = format!("wrong-verifier-{:0>40}", world.next_number());
    world.exchange(&partner, &astray, &lost).await.expect(400);
    world.refresh(&partner, &pair.refresh).await.expect(400);
    let Asking { verifier: wrong, .. } = astray;
    let personal = world.personal_token(&member.seller, &["offers:read"]).await.token;
    let form = member.browser.form("/panel/tokens").await;
    let form = form.with("scopes", "offers:read").with("name", "shown");
    let shown = member.browser.sent(&form).await;
    let form = member.browser.form("/panel/tokens").await;
    let form = form.with("scopes", "offers:read").with("name", "waits");
    member.browser.post(&form).await.expect(303);
    let link = world.sign_in_link(&member.seller).await;
    // Their mails wait, since there is no mail server.
    world.registered(json!({"email": "invited@shop.example"})).await;
    let (mut forgetful, email) = (world.visitor(), &member.seller.email);
    let form = forgetful
        .filled("/panel/forgotten-password", "email", email)
        .await;
    forgetful.sent(&form).await;
    vec![
        ("a password", PASSWORD.to_owned()),
        ("an operator's token", world.server.operator_token.clone()),
        ("the key that seals", keys.split_once(':').unwrap().1.to_owned()),
        ("a session", member.session()),
        ("a client secret", own.client_secret),
        ("an access token", access),
        ("a webhook's secret", text(&hook, "secret")),
        ("a form's token", csrf.value("csrf").unwrap().to_owned()),
        ("a used refresh token", pair.refresh),
        ("a consented access token", fresh.access),
        ("a refresh token", fresh.refresh),
        ("a code", world.code(&mut member.browser, &unused).await),
        ("a partner's secret", partner.client_secret),
        ("a used code", code),
        ("a code that was presented in vain", lost),
        ("a verifier", used.verifier),
        ("a verifier that was not used", unused.verifier),
        ("a wrong verifier", wrong),
        ("a personal token", personal),
        ("a token that was shown once", shown.text_of("secret")),
        ("a one-time link", link.rsplit_once('/').unwrap().1.to_owned()),
    ]
}

/// The secret with this name.
pub(crate) fn the<'a>(what: &str, secrets: &'a [(&str, String)]) -> &'a str {
    let found = secrets.iter().find(|(other, _)| *other == what);
    &found.unwrap().1
}

/// Asserts that the search is effective: hashes are found, and pending secrets are there, sealed.
pub(crate) async fn search_is_effective(world: &World, dump: &str, secrets: &[(&str, String)]) {
    let access = the("an access token", secrets).as_bytes();
    let hash = hex(digest(&SHA256, access).as_ref());
    for there in [hash.as_str(), "$argon2id$", "invited@shop.example"] {
        assert!(dump.contains(there), "{there}");
    }
    for waiting in [
        "flashes where sealed is not null",
        "idempotency where body is not null",
        "authorization_codes where used_at is null",
    ] {
        let count = format!("select count(*) from {waiting}");
        assert!(world.count(&count, &[]).await > 0, "{waiting}");
    }
}

#[tokio::test]
async fn a_password_cannot_be_guessed_from_its_requests_fingerprint() {
    let world = crate::world().await;
    let client = world.database.connect().await;
    let is_guessed = async |path: &str, body: &Value| {
        let request = || keyed(world.office(Method::POST, path).json(body), path);
        let first = request().send().await;
        assert_eq!(request().send().await.expect(first.status).bytes, first.bytes);
        let mut parts = Vec::new();
        for part in ["POST", path, &body.to_string()] {
            parts.extend(u64::try_from(part.len()).unwrap().to_be_bytes());
            parts.extend(part.as_bytes());
        }
        let stored = "select fingerprint from idempotency where key = $1";
        let stored = client.query_one(stored, &[&path]).await.unwrap();
        stored.get::<_, Vec<u8>>(0) == digest(&SHA256, &parts).as_ref()
    };
    let new = json!({"name": "Kettles", "email": "k@shop.example", "password": "kitchen-sparrow-42"});
    assert!(!is_guessed("/sellers", &new).await);
    // Others have nothing to guess.
    let closure = format!("/sellers/{}/closure", world.seller().await.id);
    assert!(is_guessed(&closure, &json!({})).await);
}

#[tokio::test]
async fn every_bytea_column_is_a_hash_or_sealed_or_a_delivery() {
    let world = crate::world().await;
    let client = world.database.connect().await;
    let columns = "select c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid \
        where a.atttypid = 'bytea'::regtype and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p') \
        and c.relnamespace = 'public'::regnamespace and a.attname !~ '(hash|fingerprint)$' order by 1";
    let columns = client.query(columns, &[]).await.unwrap();
    let columns: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
    // `seller-api admin keys status` counts each of these, except a delivery's body, which holds no secret.
    let known = "account_mails.url deliveries.body flashes.sealed idempotency.body subscriptions.secret";
    assert_eq!(columns.join(" "), known);
}
