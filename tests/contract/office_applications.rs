//! Registering applications by the panel's rules, and changing them.

use blackbox::{Expect, entry};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

#[tokio::test]
async fn purpose_decides_the_status_and_the_type_the_secret() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/applications", seller.id);
    for (purpose, status) in [
        ("own_use", "active"),
        ("for_other_sellers", "pending"),
        ("other", "pending"),
    ] {
        for client_type in ["confidential", "public"] {
            let registration = world.registration(json!({"purpose": purpose, "client_type": client_type}));
            let made = world.office_post(&path, &registration).await.expect(201).json();
            assert_eq!(made.as_object().unwrap().len(), 3, "{made}");
            assert_eq!(made["status"], status);
            assert!(made["client_id"].as_str().unwrap().starts_with("psa_"), "{made}");
            let secret = made["client_secret"].as_str();
            assert_eq!(
                secret.is_some_and(|secret| secret.starts_with("pss_")),
                client_type == "confidential"
            );
            assert_eq!(made["client_secret"].is_null(), client_type == "public");
        }
    }
}

/// Registers with each of these changes and expects the paths beside them.
async fn refuses(cases: Vec<(Value, Vec<&str>)>) {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    for (changes, paths) in cases {
        let answer = world
            .office_post(&path, &world.registration(changes.clone()))
            .await;
        assert_eq!(answer.status, 400, "{changes}");
        answer.invalid(&paths);
    }
}

#[tokio::test]
async fn every_field_has_its_rule() {
    refuses(vec![
        (json!({"name": "ab"}), vec!["name"]),
        (json!({"name": "x".repeat(41)}), vec!["name"]),
        (json!({"name": "two  spaces"}), vec!["name"]),
        (json!({"name": " led"}), vec!["name"]),
        (json!({"name": "żółw"}), vec!["name"]),
        (json!({"name": "a/b"}), vec!["name"]),
        (
            json!({"documentation_url": "http://docs.example"}),
            vec!["documentation_url"],
        ),
        (
            json!({"documentation_url": "docs.example"}),
            vec!["documentation_url"],
        ),
        (json!({"purpose": "fun"}), vec!["purpose"]),
        (json!({"client_type": "secret"}), vec!["client_type"]),
        (json!({"scopes": []}), vec!["scopes"]),
        (json!({"scopes": ["offers:read", "nothing"]}), vec!["scopes[1]"]),
        (json!({"accept_terms": false}), vec!["accept_terms"]),
        (json!({"accept_terms": "true"}), vec!["accept_terms"]),
        (json!({"secret": "x"}), vec!["secret"]),
        (
            json!({"zzz": 1, "accept_terms": false, "scopes": ["x"], "purpose": "x", "name": ""}),
            vec!["name", "purpose", "scopes[0]", "accept_terms", "zzz"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_is_required_is_named_where_it_is_missing() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    let nothing = world.office_post(&path, &json!({})).await.expect(400);
    let paths: Vec<_> = nothing
        .errors()
        .into_iter()
        .map(|(_, path)| path.unwrap())
        .collect();
    for required in [
        "name",
        "documentation_url",
        "purpose",
        "client_type",
        "scopes",
        "accept_terms",
    ] {
        assert!(
            paths.iter().any(|path| path == required),
            "{required} of {paths:?}"
        );
    }
}

#[tokio::test]
async fn redirect_addresses_are_public_https_and_each_once() {
    let https = |n: usize| format!("https://app.example/{n}");
    let wrong = [
        vec!["http://app.example/cb", "/cb", ""],
        vec![
            "https://app.example/#x",
            "https://10.0.0.1/",
            "https://a@b.example",
        ],
        vec!["https://a.localhost/", "https://localhost/cb", "https://[::1]/"],
        vec!["https://0x7f.1/", "https://2130706433/", "https://192.168.1.1/"],
        // What is no host name could get into the header that names the hosts to which consent may lead.
        vec![
            "https://a.example;script-src/x",
            "https://*.a.example/",
            "https://a.example,b/",
        ],
        vec![
            "https://a.example%3bb/",
            "https://a'b.example/",
            "https://a.example\\@b.example/",
        ],
    ];
    let all_three = vec!["redirect_uris[0]", "redirect_uris[1]", "redirect_uris[2]"];
    let mut cases: Vec<_> = wrong
        .iter()
        .map(|uris| (json!({"redirect_uris": uris}), all_three.clone()))
        .collect();
    cases.extend([
        (
            json!({"redirect_uris": [https(1), https(2), https(1)]}),
            vec!["redirect_uris[2]"],
        ),
        (
            json!({"redirect_uris": (0..21).map(https).collect::<Vec<_>>()}),
            vec!["redirect_uris"],
        ),
        (
            json!({"redirect_uris": "https://app.example"}),
            vec!["redirect_uris"],
        ),
        (json!({"redirect_uris": [5]}), vec!["redirect_uris[0]"]),
    ]);
    refuses(cases).await;
}

#[tokio::test]
async fn what_keeps_the_rules_is_registered() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    let twenty: Vec<_> = (0..20).map(|n| format!("https://app.example/{n}")).collect();
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
        json!({"redirect_uris": twenty}),
    ] {
        world
            .office_post(&path, &world.registration(fine))
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn a_name_is_unique_without_regard_to_case_and_stays_taken() {
    let world = world().await;
    let (one, other) = (world.seller().await, world.seller().await);
    let application = world.register(&one, json!({"name": "Stock Sync"})).await;
    for name in ["Stock Sync", "STOCK sync"] {
        for seller in [&one, &other] {
            let registration = world.registration(json!({"name": name}));
            let answer = world
                .office_post(&format!("/sellers/{}/applications", seller.id), &registration)
                .await;
            answer.is_problem(409, &[entry("conflict", "name")]);
        }
    }
    world
        .office(
            Method::DELETE,
            &format!("/applications/{}", application.client_id),
        )
        .send()
        .await
        .expect(204);
    let again = world.registration(json!({"name": "stock sync"}));
    let again = world
        .office_post(&format!("/sellers/{}/applications", one.id), &again)
        .await;
    again.is_problem(409, &[entry("conflict", "name")]);
}

#[tokio::test]
async fn limit_and_scopes_are_changed_within_their_ranges() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let id = &application.client_id;
    for bad in [
        json!(0),
        json!(-1),
        json!(10_000_001),
        json!(1.5),
        json!("5"),
        json!([]),
    ] {
        world
            .adjust(id, &json!({"rate_limit": bad}))
            .await
            .invalid(&["rate_limit"]);
    }
    for (scopes, path) in [
        (json!([]), "scopes"),
        (json!("offers:read"), "scopes"),
        (json!(null), "scopes"),
        (json!(["offers:read", "nothing"]), "scopes[1]"),
        (json!([1]), "scopes[0]"),
    ] {
        world
            .adjust(id, &json!({"scopes": scopes}))
            .await
            .invalid(&[path]);
    }
    world
        .adjust(id, &json!({"name": "Other", "rate_limit": 0}))
        .await
        .invalid(&["rate_limit", "name"]);
    // What is refused in part is not applied in part.
    world
        .adjust(id, &json!({"rate_limit": 5, "scopes": ["nothing"]}))
        .await
        .invalid(&["scopes[0]"]);
    let token = world.token(&application).await;
    assert_eq!(world.get(&token, "/v1/me").await.number("x-ratelimit-limit"), 600);
    for good in [1_i64, 10_000_000] {
        world
            .adjust(
                id,
                &json!({"rate_limit": good, "scopes": ["orders:read", "offers:read"]}),
            )
            .await
            .expect(200);
        assert_eq!(
            world
                .get(&token, "/v1/offers?limit=1")
                .await
                .number("x-ratelimit-limit"),
            good
        );
    }
    // `null` is the service's default again.
    let reset = world.adjust(id, &json!({"rate_limit": null})).await.expect(200);
    assert_eq!(reset.json()["rate_limit"], 600);
    assert_eq!(world.get(&token, "/v1/me").await.number("x-ratelimit-limit"), 600);
    world
        .adjust("psa_unknown", &json!({"rate_limit": 5}))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_deleted_application_is_gone_for_every_call() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let path = format!("/applications/{}", application.client_id);
    let answer = world.office(Method::DELETE, &path).send().await.expect(204);
    assert!(answer.bytes.is_empty());
    world
        .office(Method::DELETE, &path)
        .send()
        .await
        .refused(404, "not_found");
    world
        .adjust(&application.client_id, &json!({"rate_limit": 5}))
        .await
        .refused(404, "not_found");
    for step in ["acceptance", "suspension", "reinstatement"] {
        world
            .move_application(&application.client_id, step)
            .await
            .refused(404, "not_found");
    }
}
