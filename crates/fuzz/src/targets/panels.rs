//! The panel, with a seller signed in: any form and any address has a page, on which nothing that was sent has become markup.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use adapter_panel::{Panel, PanelSettings, configure};
use adapter_sealing::SystemRandomness;
use chrono::{DateTime, TimeDelta};
use oauth::{
    Account, BrowserSecret, Count, MockApplicationReader, MockGrantReader, MockPanelReader,
    MockPasswordHasher, MockRateCounter, MockSellerReader, PasswordHash, Session, SignedIn,
};
use tokio::runtime::Handle;
use usecases::sign_in::AttemptLimits;
use web::Tasks;
use webhooks::MockSubscriptionReader;

use super::offices::seller;
use super::public::application;
use super::sealed::ring;
use crate::listeners::{Listening, units_that_fail};
use crate::raw_request::RawRequest;
use crate::{Target, targets::texts};

/// What the generator puts where markup might come of it.
const MARK: &str = "<fuzz";

pub(crate) const TARGET: Target = Target {
    name: "panel",
    run,
    seeds: || {
        let number = "form=0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
        let client = "psa_0000000000000000000000000000000b";
        texts(&[
            "GET /panel/sign-in?next=tokens&lang=pl\n\n",
            "GET /panel/sign-in?request=abc-_\naccept-language: pl;q=0.5, en;q=0.7, *;q=0\n\n",
            "POST /panel/sign-in\n\nemail=anna%40shop.example&password=correct+horse+battery&next=tokens&request=",
            "POST /panel/forgotten-password\n\nemail=<fuzz>%40shop.example",
            "GET /panel/invitation/ps_ln_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc\n\n",
            "POST /panel/password-reset/ps_ln_x\n\npassword=correct+horse+battery&repeated=correct+horse+battery",
            "GET /panel/consent?request=<fuzz>\n\n",
            "POST /panel/consent\n\nrequest=abc&decision=allow",
            "GET /panel/applications\n\n",
            "GET /panel/applications/new\n\n",
            &format!(
                "POST /panel/applications/new\n\n{number}&name=<fuzz>&description=%22%27%3Cfuzz%3E&documentation_url=javascript:<fuzz>&purpose=own_use&client_type=public&redirect_uris=https%3A%2F%2Fa.example%0D%0A<fuzz>&scopes=offers%3Aread&scopes=<fuzz>&accept_terms=on"
            ),
            &format!("GET /panel/applications/{client}\n\n"),
            &format!(
                "POST /panel/applications/{client}\n\n{number}&description=x&redirect_uris=https%3A%2F%2Fa.example&scopes=offers%3Aread"
            ),
            &format!("POST /panel/applications/{client}/secret\n\n{number}"),
            &format!("POST /panel/applications/{client}/delete\n\n{number}&name=Kettle+Sync"),
            "GET /panel/tokens\n\n",
            &format!("POST /panel/tokens\n\n{number}&name=<fuzz>&scopes=offers%3Aread&expires_in_days=30"),
            "POST /panel/tokens/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e/revoke\n\n",
            "GET /panel/deliveries?subscription=0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e&failed=on&<fuzz>=<fuzz>\n\n",
            &format!(
                "POST /panel/deliveries/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e/again\n\n{number}&shown_subscription=&shown_failed=on&subscription=0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e"
            ),
            "GET /panel/once/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e\n\n",
            "POST /panel/account\n\ncurrent_password=correct+horse+battery&password=another+good+password&repeated=another+good+password",
            "POST /panel/sign-out\n\n",
            "GET /panel/assets/look.css\n\n",
        ])
    },
    words: &[
        "GET ",
        "POST ",
        "/panel/",
        "<fuzz>",
        "%3Cfuzz%3E",
        "%22%3Cfuzz%3E",
        "javascript:",
        "&scopes=",
        "lang=pl",
        "lang=en",
        "&next=",
        "request=",
        "cookie: seller_panel_language=pl\n",
        "accept-language: ",
        "content-type: text/plain\n",
        "&name=",
        "csrf=",
    ],
    grows: &[],
};

fn browser() -> BrowserSecret {
    BrowserSecret::from_random(&[7; 32])
}

fn panel_reader() -> MockPanelReader {
    let mut panel = MockPanelReader::new();
    let hash = || Some(PasswordHash::new("hash".to_owned()));
    panel.expect_account().returning(move |email| {
        let account = Account {
            seller: seller(),
            password: hash(),
        };
        Ok(Some(account).filter(|account| account.seller.email == email))
    });
    panel.expect_password().returning(move |_| Ok(hash()));
    panel.expect_signed_in().returning(|session| {
        let now = DateTime::UNIX_EPOCH;
        let signed_in = SignedIn {
            seller: seller(),
            session: Session {
                hash: session,
                seller: seller().id,
                created_at: now,
                seen_at: now,
            },
            now,
        };
        Ok((session == browser().hash()).then_some(signed_in))
    });
    panel.expect_link().returning(|_| Ok(None));
    panel.expect_personal_tokens().returning(|_| Ok(Vec::new()));
    panel.expect_usage().returning(|_, _| Ok((Vec::new(), 0)));
    panel
}

fn panel(runtime: Handle) -> Panel {
    let mut grants = MockGrantReader::new();
    grants.expect_connections().returning(|_| Ok(Vec::new()));
    let mut subscriptions = MockSubscriptionReader::new();
    subscriptions
        .expect_subscriptions_of_seller()
        .returning(|_| Ok(Vec::new()));
    subscriptions
        .expect_deliveries_of_seller()
        .returning(|_, _, _| Ok(Vec::new()));
    let mut applications = MockApplicationReader::new();
    applications
        .expect_client()
        .returning(|id| Ok(Some(application()).filter(|application| application.client_id == id)));
    applications
        .expect_applications_of()
        .returning(|_| Ok(vec![application()]));
    let mut sellers = MockSellerReader::new();
    sellers.expect_seller().returning(|_| Ok(Some(seller())));
    let mut rates = MockRateCounter::new();
    rates.expect_count().returning(|_, _| {
        let counted_at = DateTime::UNIX_EPOCH;
        Ok(Count {
            place: 1,
            resets_at: counted_at + TimeDelta::seconds(40),
            counted_at,
        })
    });
    let mut passwords = MockPasswordHasher::new();
    passwords
        .expect_hash()
        .returning(|_| Ok(PasswordHash::new("hash".to_owned())));
    passwords
        .expect_verify()
        .returning(|password, _| Ok(password == "correct horse battery"));
    Panel {
        units: Arc::new(units_that_fail()),
        panel: Arc::new(panel_reader()),
        grants: Arc::new(grants),
        subscriptions: Arc::new(subscriptions),
        applications: Arc::new(applications),
        sellers: Arc::new(sellers),
        rates: Arc::new(rates),
        passwords: Arc::new(passwords),
        sealer: ring().clone(),
        randomness: Arc::new(SystemRandomness::new()),
        tasks: Tasks::new(runtime),
        settings: Arc::new(PanelSettings {
            public_url: "http://127.0.0.1:8080".to_owned(),
            service_name: "Shop".to_owned(),
            docs_url: "https://docs.shop.example".to_owned(),
            code_ttl: TimeDelta::minutes(10),
            attempts: AttemptLimits {
                per_address: 30,
                undelayed_per_account: 5,
                longest_delay: Duration::from_secs(10),
            },
            default_rate_limit: NonZeroU32::MIN,
            trusted_proxies: Vec::new(),
            body_timeout: Duration::from_secs(1),
        }),
    }
}

thread_local! {
    static LISTENING: Listening = Listening::new(|runtime| configure(panel(runtime)));
}

fn run(bytes: &[u8]) {
    let Some(mut request) = RawRequest::read(bytes) else {
        return;
    };
    let path = request.uri.path();
    if path != "/panel" && !path.starts_with("/panel/") {
        return;
    }
    request.unless_given("cookie", &format!("seller_panel={}", browser().reveal()));
    if request.method == "POST" {
        request.unless_given("content-type", "application/x-www-form-urlencoded");
        if !request.body.windows(5).any(|five| five == b"csrf=") {
            request
                .body
                .extend_from_slice(format!("&csrf={}", browser().csrf_token()).as_bytes());
        }
    }
    let answered = LISTENING.with(|listening| listening.ask(request));
    assert!(answered.status < 500 || answered.store_failed, "{answered:?}");
    assert!(answered.header("x-trace-id").is_some());
    assert!(
        answered
            .header("content-security-policy")
            .is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    if let Some(location) = answered.header("location") {
        assert!(location.starts_with("/panel"), "{location}");
        assert!(location.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    let page = String::from_utf8_lossy(&answered.body).to_lowercase();
    assert!(!page.contains(MARK), "markup: {page}");
    assert!(answered.body.len() <= 256 * 1024 + 16 * bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_reach_pages() {
        for seed in (TARGET.seeds)() {
            run(&seed);
        }
    }
}
