//! Tests the whole document with schemathesis: valid requests are accepted, invalid ones are rejected, and
//! every answer is documented.
//!
//! `EXAMPLES` and `SEED` make a longer run:
//! `EXAMPLES=2000 SEED=7 cargo test -p blackbox --test document -- the_running_program`.

use blackbox::{Document, Sandbox, documented_returns, text};
use serde_json::Value;

use crate::PROGRAM;
use crate::tools::{committed, of_python, run};

/// Examples per operation and test phase; a run takes less than a minute.
const EXAMPLES: &str = "30";
const SEED: &str = "1";

/// Lifts rate limits, which have separate tests, and runs no workers, so that nothing is sent to generated
/// addresses.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("SELLER_API__RATE_LIMIT__DEFAULT", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", "10000000"),
    ("SELLER_API__OAUTH__AUTHORIZE_LIMIT_PER_IP", "10000000"),
    ("SELLER_API__SERVER__WORKERS", "none"),
];

#[tokio::test]
async fn the_running_program_conforms_to_the_document() {
    let Some(mut schemathesis) = of_python("schemathesis") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--webhook-addresses", "any"];
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join("sandbox"), &arguments, &ENVIRONMENT).await;
    let (base, seller) = (&*sandbox.text("base_url"), &sandbox.credentials["sellers"][0]);
    let (application, partner) = (&seller["applications"][0], &seller["applications"][1]);
    let exchanges = folder.path().join("exchanges.har");
    let given = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    schemathesis
        .arg("--config-file")
        .arg(committed("schemathesis/schemathesis.toml"))
        .args(["run", "--url", base])
        .args(["--max-examples", &given("EXAMPLES", EXAMPLES)])
        .args(["--seed", &given("SEED", SEED)])
        .args(["--report", "har", "--report-har-path"])
        .arg(&exchanges)
        .arg(format!("{base}/openapi.json"))
        .env("HOOKS", committed("schemathesis/hooks.py"))
        .env("TOKEN", text(seller, "personal_token"))
        .env("CLIENT_ID", text(application, "client_id"))
        .env("CLIENT_SECRET", text(application, "client_secret"))
        .env("PARTNER_ID", text(partner, "client_id"))
        .env("ORDER", text(&seller["examples"], "order"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder.path());
    let said = run(&mut schemathesis, "").await;
    let all = Document::current().operations().len();
    assert!(said.contains(&format!("Tested: {all}\n")), "{said}");
    was_sent_on(&std::fs::read_to_string(exchanges).unwrap(), base);
}

/// Asserts that there were redirects to the consent screen, and to the application with errors.
fn was_sent_on(exchanges: &str, base: &str) {
    let exchanges: Value = serde_json::from_str(exchanges).unwrap();
    let entries = exchanges["log"]["entries"].as_array().unwrap();
    let to_authorize = |entry: &&Value| {
        let url = entry["request"]["url"].as_str().unwrap();
        url.starts_with(&format!("{base}/oauth/authorize?")) && entry["response"]["status"] == 302
    };
    let location = |entry: &Value| {
        let headers = entry["response"]["headers"].as_array().unwrap();
        let location = headers.iter().find(|header| header["name"] == "location");
        location.unwrap()["value"].as_str().unwrap().to_owned()
    };
    let sent_to: Vec<String> = entries.iter().filter(to_authorize).map(location).collect();
    let count = |is: &dyn Fn(&str) -> bool| sent_to.iter().filter(|to| is(to)).count();
    let to_consent = count(&|to| to.starts_with(&format!("{base}/panel/consent?request=")));
    let back = count(&|to| {
        let errors = documented_returns();
        errors
            .iter()
            .any(|error| to.contains(&format!("?error={error}&")))
    });
    assert!(to_consent > 0 && back > 0, "{sent_to:#?}");
    assert_eq!(to_consent + back, sent_to.len(), "{sent_to:#?}");
}
