//! Applications in the back office: registered by the panel's rules, changed, and moved by the operator.

use blackbox::{Application, Expect, Seller, World, entry, text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{world, world_of_consent};

#[tokio::test]
async fn purpose_decides_the_status_and_the_type_the_secret() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    for (purpose, status) in [
        ("own_use", "active"),
        ("for_other_sellers", "pending"),
        ("other", "pending"),
    ] {
        for client_type in ["confidential", "public"] {
            let registration = world.registration(json!({"purpose": purpose, "client_type": client_type}));
            let made = world.office_made(&path, &registration).await;
            assert_eq!(
                (made.as_object().unwrap().len(), &made["status"]),
                (3, &json!(status)),
                "{made}"
            );
            assert!(text(&made, "client_id").starts_with("psa_"), "{made}");
            let secret = made["client_secret"].as_str();
            assert_eq!(
                secret.is_some_and(|secret| secret.starts_with("pss_")),
                client_type == "confidential"
            );
            assert_eq!(made["client_secret"].is_null(), client_type == "public");
        }
    }
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    let refused = async |changes: Value, paths: &str| {
        let registration = world.registration(changes.clone());
        let answer = world.office_post(&path, &registration).await;
        assert_eq!(answer.status, 400, "{changes}");
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    };
    for name in ["ab", &"x".repeat(41), "two  spaces", " led", "żółw", "a/b"] {
        refused(json!({"name": name}), "name").await;
    }
    let all_wrong = json!({"zzz": 1, "accept_terms": false, "scopes": ["x"], "purpose": "x", "name": ""});
    for (changes, paths) in [
        (
            json!({"documentation_url": "http://docs.example"}),
            "documentation_url",
        ),
        (json!({"documentation_url": "docs.example"}), "documentation_url"),
        (json!({"purpose": "fun"}), "purpose"),
        (json!({"client_type": "secret"}), "client_type"),
        (json!({"scopes": []}), "scopes"),
        (json!({"scopes": ["offers:read", "nothing"]}), "scopes[1]"),
        (json!({"accept_terms": false}), "accept_terms"),
        (json!({"accept_terms": "true"}), "accept_terms"),
        (json!({"secret": "x"}), "secret"),
        (json!({"redirect_uris": "https://app.example"}), "redirect_uris"),
        (json!({"redirect_uris": [5]}), "redirect_uris[0]"),
        (all_wrong, "name purpose scopes[0] accept_terms zzz"),
    ] {
        refused(changes, paths).await;
    }
    let nothing = world.office_post(&path, &json!({})).await.expect(400).errors();
    for required in "name documentation_url purpose client_type scopes accept_terms".split(' ') {
        let is_named = |(_, path): &(String, Option<String>)| path.as_deref() == Some(required);
        assert!(nothing.iter().any(is_named), "{required} of {nothing:?}");
    }
    // Redirect URIs are public, HTTPS, and unique.
    let https = |n: usize| format!("https://app.example/{n}");
    for wrong in [
        ["http://app.example/cb", "/cb", ""],
        [
            "https://app.example/#x",
            "https://10.0.0.1/",
            "https://a@b.example",
        ],
        ["https://a.localhost/", "https://localhost/cb", "https://[::1]/"],
        ["https://0x7f.1/", "https://2130706433/", "https://192.168.1.1/"],
        // An invalid host name could get into the header that lists the hosts to which consent may lead.
        [
            "https://a.example;script-src/x",
            "https://*.a.example/",
            "https://a.example,b/",
        ],
        [
            "https://a.example%3bb/",
            "https://a'b.example/",
            "https://a.example\\@b.example/",
        ],
    ] {
        let paths = "redirect_uris[0] redirect_uris[1] redirect_uris[2]";
        refused(json!({"redirect_uris": wrong}), paths).await;
    }
    refused(
        json!({"redirect_uris": [https(1), https(2), https(1)]}),
        "redirect_uris[2]",
    )
    .await;
    let twenty_one: Vec<_> = (0..21).map(https).collect();
    refused(json!({"redirect_uris": twenty_one}), "redirect_uris").await;
    let queries_and_ports = [
        "https://app.example:8443/cb?x=1",
        "https://app.example",
        "https://1.1.1.1/",
    ];
    for fine in [
        json!({"name": "A.b_c-d 2", "description": "Keeps stock in step."}),
        json!({"description": null, "documentation_url": "https://docs.example/app#usage"}),
        json!({"scopes": ["messaging", "offers:read", "messaging"]}),
        json!({"redirect_uris": queries_and_ports}),
        json!({"redirect_uris": twenty_one[..20]}),
    ] {
        world.office_made(&path, &world.registration(fine)).await;
    }
}

#[tokio::test]
async fn a_name_is_unique_without_regard_to_case_and_stays_taken() {
    let world = world().await;
    let (one, other) = (world.seller().await, world.seller().await);
    let app = world.register(&one, json!({"name": "Stock Sync"})).await;
    for deleted in [false, true] {
        if deleted {
            world.delete_application(&app).await;
        }
        for (seller, name) in [(&one, "Stock Sync"), (&one, "STOCK sync"), (&other, "stock sync")] {
            let path = format!("/sellers/{}/applications", seller.id);
            let registration = world.registration(json!({"name": name}));
            let answer = world.office_post(&path, &registration).await;
            answer.is_problem(409, &[entry("conflict", "name")]);
        }
    }
}

#[tokio::test]
async fn limit_and_scopes_are_changed_within_their_ranges() {
    let world = world().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let id = &app.client_id;
    let bad = ["0", "-1", "10000001", "1.5", "\"5\"", "[]"].map(|bad| bad.parse::<Value>().unwrap());
    let mut cases: Vec<_> = bad
        .into_iter()
        .map(|bad| (json!({"rate_limit": bad}), "rate_limit"))
        .collect();
    cases.extend([
        (json!({"scopes": []}), "scopes"),
        (json!({"scopes": "offers:read"}), "scopes"),
        (json!({"scopes": null}), "scopes"),
        (json!({"scopes": ["offers:read", "nothing"]}), "scopes[1]"),
        (json!({"scopes": [1]}), "scopes[0]"),
        (json!({"name": "Other", "rate_limit": 0}), "rate_limit name"),
        // If a part is invalid, nothing is applied.
        (json!({"rate_limit": 5, "scopes": ["nothing"]}), "scopes[0]"),
    ]);
    for (changes, paths) in cases {
        let answer = world.adjust(id, &changes).await;
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    }
    let token = world.token(&app).await;
    let limit = async |path: &str| {
        let answer = world.get(&token, path).await.expect(200);
        answer.number("x-ratelimit-limit")
    };
    assert_eq!(limit("/v1/me").await, 600);
    for good in [1_i64, 10_000_000] {
        let changes = json!({"rate_limit": good, "scopes": ["orders:read", "offers:read"]});
        world.adjust(id, &changes).await.expect(200);
        let answer = world.get(&token, "/v1/offers?limit=1").await;
        assert_eq!(answer.number("x-ratelimit-limit"), good);
    }
    // `null` restores the service's default.
    let reset = world.adjust(id, &json!({"rate_limit": null})).await.expect(200);
    assert_eq!(reset.json()["rate_limit"], 600);
    assert_eq!(limit("/v1/me").await, 600);
    let unknown = world.adjust("psa_unknown", &json!({"rate_limit": 5})).await;
    unknown.refused(404, "not_found");
}

#[tokio::test]
async fn a_deleted_application_is_gone_for_every_call() {
    let world = world().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let path = format!("/applications/{}", app.client_id);
    let answer = world.office_delete(&path).await.expect(204);
    assert!(answer.bytes.is_empty());
    let mut answers = vec![world.office_delete(&path).await];
    answers.push(world.adjust(&app.client_id, &json!({"rate_limit": 5})).await);
    for step in ["acceptance", "suspension", "reinstatement"] {
        answers.push(world.move_application(&app.client_id, step).await);
    }
    for answer in answers {
        answer.refused(404, "not_found");
    }
}

async fn application_in(world: &World, seller: &Seller, status: &str) -> Application {
    let purpose = if status == "pending" { "other" } else { "own_use" };
    let app = world.register(seller, json!({"purpose": purpose})).await;
    if status == "suspended" {
        world.moved(&app, "suspension").await;
    }
    app
}

#[tokio::test]
async fn the_table_of_moves() {
    let world = world_of_consent().await;
    let seller = world.seller().await;
    for (from, step, to) in [
        ("pending", "acceptance", Some("active")),
        ("pending", "suspension", None),
        ("pending", "reinstatement", None),
        ("active", "acceptance", Some("active")),
        ("active", "suspension", Some("suspended")),
        ("active", "reinstatement", Some("active")),
        ("suspended", "acceptance", None),
        ("suspended", "suspension", Some("suspended")),
        ("suspended", "reinstatement", Some("active")),
    ] {
        let app = application_in(&world, &seller, from).await;
        let answer = world.move_application(&app.client_id, step).await;
        match to {
            Some(to) => assert_eq!(answer.expect(200).json()["status"], to),
            None => answer.refused(409, "conflict"),
        }
        let now = to.unwrap_or(from);
        let token = world.token_answer(&app).await;
        assert_eq!(
            token.status,
            if now == "suspended" { 401 } else { 200 },
            "{from} {step}"
        );
        // Only a pending application cannot be suspended.
        let suspended = world.move_application(&app.client_id, "suspension").await;
        assert_eq!(suspended.status == 409, now == "pending", "{from} {step}");
    }
    let path = format!(
        "/applications/{}/suspension",
        application_in(&world, &seller, "active").await.client_id
    );
    let answer = world.office(Method::POST, &path).send().await.expect(200);
    assert_eq!(answer.must("content-type"), "application/json");
    world.office_get(&path).await.refused(404, "not_found");
}
