//! The marketplace's listener over ports that know one seller and one offer: any request has an answer of the documented form.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use adapter_backoffice::{BackOffice, BackOfficeSettings, Health, NotReady, configure};
use adapter_sealing::SystemRandomness;
use async_trait::async_trait;
use changes::{ChangeCursor, ChangePage, ChangesError, MockChangeReader};
use chrono::DateTime;
use kernel::{Claimed, MockIdempotencyClaims};
use oauth::{
    MockApplicationReader, MockOperatorTokens, MockPanelReader, MockPasswordHasher, MockSellerReader,
    OperatorTokenRow, PasswordHash, Seller,
};
use offers::MockOfferReader;
use orders::{Lookup, MockCarrierLookup, MockOrderDirectory};
use tokio::runtime::Handle;
use uuid::Uuid;
use web::{Tasks, TrustedProxies};

use super::public::{application, errors_are_of_the_table, offer};
use crate::listeners::{Listening, units_that_fail};
use crate::raw_request::RawRequest;
use crate::{Target, targets::texts};

const SELLER: &str = "00000000-0000-0000-0000-00000000000a";

pub(crate) const TARGET: Target = Target {
    name: "office",
    run,
    seeds: || {
        let key = "idempotency-key: k-1";
        let json = format!("content-type: application/json\n{key}");
        let offer = r#"{"title":"Kettle","handle":"kettle","status":"published","price":{"amount":12900,"currency":"PLN"},"stock":3,"url":"https://a.example/k"}"#;
        let item = r#"{"offer_id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","seller_id":"00000000-0000-0000-0000-00000000000a","quantity":2,"unit_price":{"amount":12900,"currency":"PLN"}}"#;
        texts(&[
            &format!(
                "POST /sellers\n{json}\n\n{{\"name\": \"Kettles\", \"email\": \"anna@shop.example\", \"password\": \"correct horse battery\"}}"
            ),
            "GET /sellers?after=17&limit=3\n\n",
            &format!("GET /sellers/{SELLER}\n\n"),
            &format!("POST /sellers/{SELLER}/closure\n{key}\n\n"),
            &format!("POST /sellers/{SELLER}/invitations\n{key}\n\n"),
            &format!("POST /sellers/{SELLER}/sign-in-links\n{key}\n\n"),
            &format!("PUT /sellers/{SELLER}/offers/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e\n{json}\n\n{offer}"),
            &format!(
                "POST /sellers/{SELLER}/offers/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e/moderation\n{json}\n\n{{\"decision\": \"approve\"}}"
            ),
            &format!(
                "POST /sellers/{SELLER}/offers/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e/automatic-price\n{json}\n\n{{\"price\": {{\"amount\": 5, \"currency\": \"PLN\"}}}}"
            ),
            &format!(
                "POST /sellers/{SELLER}/offers:import\ncontent-type: application/x-ndjson\n\n{{\"id\":\"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e\",{}\n",
                &offer[1..]
            ),
            &format!(
                "POST /sellers/{SELLER}/applications\n{json}\n\n{{\"name\": \"Stock Sync\", \"documentation_url\": \"https://docs.example\", \"purpose\": \"own_use\", \"client_type\": \"confidential\", \"redirect_uris\": [\"https://app.example/cb\"], \"scopes\": [\"offers:read\"], \"accept_terms\": true}}"
            ),
            &format!(
                "POST /sellers/{SELLER}/personal-tokens\n{json}\n\n{{\"name\": \"script\", \"scopes\": [\"offers:read\"], \"expires_at\": \"2030-01-01T00:00:00Z\"}}"
            ),
            &format!("DELETE /sellers/{SELLER}/personal-tokens/{SELLER}\n\n"),
            "PATCH /applications/psa_0000000000000000000000000000000b\ncontent-type: application/json\n\n{\"rate_limit\": 700}",
            "POST /applications/psa_0000000000000000000000000000000b/acceptance\n\n",
            &format!(
                "POST /orders\n{json}\n\n{{\"order_number\": \"PL-2026-17\", \"is_test\": true, \"payment_method\": \"blik\", \"buyer\": {{\"name\": \"Ewa\", \"email\": \"ewa@example.com\", \"phone\": null}}, \"shipping_address\": {{\"line1\": \"D\", \"city\": \"W\", \"country\": \"PL\"}}, \"items\": [{item}]}}"
            ),
            "GET /orders/PL-2026-17\n\n",
            &format!("POST /orders/PL-2026-17/payment\n{key}\n\n"),
            &format!(
                "POST /orders/PL-2026-17/shipment\n{json}\n\n{{\"seller_id\": \"{SELLER}\", \"carrier\": \"dpd\", \"tracking_number\": \"1234\"}}"
            ),
            &format!("POST /orders/PL-2026-17/delivery\n{key}\n\n"),
            "GET /changes?limit=5&wait=5\n\n",
            "GET /readyz\n\n",
            "GET /metrics\n\n",
        ])
    },
    words: &[
        "GET ",
        "POST ",
        "PUT ",
        "/sellers/",
        "/orders/",
        "/offers/",
        "/applications/",
        "content-type: application/json\n",
        "\n\n",
        "{}",
        "\"items\":[",
        "\"quantity\":",
        "\"email\":",
        "\"scopes\":",
        "\"redirect_uris\":",
        "\"rate_limit\":null",
        "?after=",
        "&wait=",
        "%2F",
        "authorization: Bearer x\n",
        "idempotency-key: k\n",
    ],
    grows: &[],
};

struct Well;

#[async_trait]
impl Health for Well {
    async fn ready(&self) -> Result<(), NotReady> {
        Ok(())
    }
}

pub(super) fn seller() -> Seller {
    Seller {
        id: Uuid::from_u128(0xa).into(),
        seller_no: 17,
        name: "Kettles".to_owned(),
        email: "anna@shop.example".to_owned(),
        created_at: DateTime::UNIX_EPOCH,
        closed_at: None,
    }
}

fn office(runtime: Handle) -> BackOffice {
    let tasks = Tasks::new(runtime);
    // A reader of the feed would wait for as long as it asks to.
    tasks.stop();
    let mut sellers = MockSellerReader::new();
    sellers
        .expect_seller()
        .returning(|id| Ok(Some(seller()).filter(|seller| seller.id == id)));
    sellers.expect_sellers().returning(|_, _| Ok(vec![seller()]));
    let mut offers = MockOfferReader::new();
    offers
        .expect_offer()
        .returning(|_, id| Ok(Some(offer()).filter(|offer| offer.id == id)));
    let mut orders = MockOrderDirectory::new();
    orders.expect_parts().returning(|_| Ok(Vec::new()));
    let mut changes = MockChangeReader::new();
    changes.expect_changes().returning(|after, _| match after {
        Some(_) => Err(ChangesError::Malformed),
        None => Ok(ChangePage {
            items: Vec::new(),
            next: ChangeCursor("abc".to_owned()),
        }),
    });
    let mut applications = MockApplicationReader::new();
    applications
        .expect_client()
        .returning(|id| Ok(Some(application()).filter(|application| application.client_id == id)));
    applications
        .expect_applications_of()
        .returning(|_| Ok(Vec::new()));
    let mut panel = MockPanelReader::new();
    panel.expect_password().returning(|_| Ok(None));
    let mut operators = MockOperatorTokens::new();
    operators.expect_operator().returning(|_| {
        Ok(Some(OperatorTokenRow {
            id: Uuid::from_u128(3),
            name: "shop".to_owned(),
            created_at: DateTime::UNIX_EPOCH,
            revoked_at: None,
        }))
    });
    let mut claims = MockIdempotencyClaims::new();
    claims.expect_claim().returning(|_, _| Ok(Claimed::Run));
    claims.expect_release().returning(|_| Ok(()));
    claims.expect_outcome().returning(|_| Ok(None));
    let mut carriers = MockCarrierLookup::new();
    carriers.expect_look_up().returning(|_, _| Lookup::NotFound);
    let mut passwords = MockPasswordHasher::new();
    passwords
        .expect_hash()
        .returning(|_| Ok(PasswordHash::new("hash".to_owned())));
    BackOffice {
        units: Arc::new(units_that_fail()),
        sellers: Arc::new(sellers),
        offers: Arc::new(offers),
        orders: Arc::new(orders),
        changes: Arc::new(changes),
        applications: Arc::new(applications),
        panel: Arc::new(panel),
        operators: Arc::new(operators),
        claims: Arc::new(claims),
        carriers: Arc::new(carriers),
        passwords: Arc::new(passwords),
        randomness: Arc::new(SystemRandomness::new()),
        tasks,
        health: Arc::new(Well),
        metrics: Arc::new(|| "up 1\n".to_owned()),
        settings: Arc::new(BackOfficeSettings {
            realm: "Shop".to_owned(),
            public_url: "https://api.shop.example".to_owned(),
            trusted_proxies: TrustedProxies::default(),
            default_rate_limit: NonZeroU32::MIN,
            body_timeout: Duration::from_secs(1),
            idempotency_lease: Duration::from_mins(1),
        }),
    }
}

thread_local! {
    static LISTENING: Listening = Listening::new(|runtime| configure(office(runtime)));
}

fn run(bytes: &[u8]) {
    let Some(mut request) = RawRequest::read(bytes) else {
        return;
    };
    request.unless_given(
        "authorization",
        "Bearer ps_op_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
    );
    let answered = LISTENING.with(|listening| listening.ask(request));
    assert!(answered.status < 500 || answered.store_failed, "{answered:?}");
    errors_are_of_the_table(&answered, bytes.len());
    assert!(answered.header("x-trace-id").is_some());
    assert!(answered.body.len() <= 64 * 1024 + 12 * bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_get_as_far_as_the_store() {
        let ask = |seed: &Vec<u8>| {
            let mut request = RawRequest::read(seed).unwrap();
            request.unless_given(
                "authorization",
                "Bearer ps_op_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            );
            (
                LISTENING.with(|listening| listening.ask(request)),
                String::from_utf8_lossy(seed).into_owned(),
            )
        };
        for (answered, seed) in (TARGET.seeds)().iter().map(ask) {
            assert_ne!(answered.status, 400, "{seed}\n{answered:?}");
        }
    }
}
