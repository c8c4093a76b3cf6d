//! Applications in the back office: registered by the panel's rules, changed, and moved by the operator.

use blackbox::{
    Application, Expect, Page, Seller, Visitor, World, all_invalid_changes, at_once, count_of, entry, pages,
    text, whole,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{world, world_of_consent, world_with};

#[tokio::test]
async fn the_purpose_sets_the_status_and_the_type_the_secret() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    for (purpose, client_type, status) in [
        ("own_use", "confidential", "active"),
        ("for_other_sellers", "public", "pending"),
        ("other", "confidential", "pending"),
    ] {
        let registration = world.registration(json!({"purpose": purpose, "client_type": client_type}));
        let made = world.office_made(&path, &registration).await;
        assert!(text(&made, "client_id").starts_with("psa_"), "{made}");
        let secret = made["client_secret"].as_str();
        let has_secret = secret.is_some_and(|secret| secret.starts_with("pss_"));
        assert_eq!(has_secret, client_type == "confidential");
        assert_eq!(made["client_secret"].is_null(), client_type == "public");
        assert_eq!(made["status"], status);
        assert_eq!(made.as_object().unwrap().len(), 3, "{made}");
    }
}

#[tokio::test]
async fn every_field_is_validated() {
    let world = world().await;
    let path = format!("/sellers/{}/applications", world.seller().await.id);
    let post = async |body: &Value| world.office_post(&path, body).await;
    let valid = world.registration(json!({}));
    let table = r#"
        {"name": "two  spaces"}  => name
        {"documentation_url": "docs.example"}         => documentation_url
        {"client_type": "secret"}   => client_type
        {"accept_terms": "true"}    => accept_terms
        {"zzz": 1, "accept_terms": false, "scopes": ["x"], "purpose": "x", "name": ""} => name purpose scopes[0] accept_terms zzz
        {"redirect_uris": "https://app.example"}  => redirect_uris
        {"redirect_uris": [5]}                    => redirect_uris[0]
        {"redirect_uris": ["https://a.example/", "https://a.example/"]} => redirect_uris[1]
        {"scopes": []}          => scopes
        {"description": "LONG"} => description
        {"redirect_uris": ["https://app.example/#x", "https://a.example/", "https://10.0.0.1/"]} => redirect_uris[0] redirect_uris[2]"#;
    all_invalid_changes(&table.replace("LONG", &"x".repeat(2001)), &valid, post).await;
    let many: Vec<_> = (0..21).map(|n| format!("https://a.example/{n}")).collect();
    let many = world.registration(json!({"redirect_uris": many}));
    post(&many).await.invalid("redirect_uris");
    let nothing = post(&json!({})).await.expect(400).errors();
    for required in "name documentation_url purpose client_type scopes accept_terms".split(' ') {
        let is_named = |(_, path): &(String, Option<String>)| path.as_deref() == Some(required);
        assert!(nothing.iter().any(is_named), "{required} of {nothing:?}");
    }
    let unusual = ["https://app.example:8443/cb?x=1", "https://app.example"];
    for fine in [
        json!({"name": "A.b_c-d 2", "description": "Keeps stock in step."}),
        json!({"description": null, "documentation_url": "https://docs.example/app#usage"}),
        json!({"scopes": ["messaging", "offers:read", "messaging"]}),
        json!({"redirect_uris": unusual}),
    ] {
        world.office_made(&path, &world.registration(fine)).await;
    }
}

#[tokio::test]
async fn a_name_is_unique_ignoring_case_even_after_deletion_if_others_could_see_it() {
    let world = world().await;
    let (one, other) = (world.seller().await, world.seller().await);
    let named = async |seller: &Seller, name: &str| {
        let registration = world.registration(json!({"name": name, "purpose": "for_other_sellers"}));
        world
            .office_post(&format!("/sellers/{}/applications", seller.id), &registration)
            .await
    };
    for (number, purpose, step, stays_taken) in [
        (1, "own_use", None, false),
        (2, "other", None, false),
        (3, "own_use", Some("suspension"), false),
        (4, "other", Some("acceptance"), true),
        (5, "for_other_sellers", Some("acceptance"), true),
    ] {
        let name = format!("Stock Sync {number}a");
        let app = world
            .register(&one, json!({"name": name, "purpose": purpose}))
            .await;
        if let Some(step) = step {
            world.moved(&app, step).await;
        }
        let spellings = [
            (&one, name.clone()),
            (&one, name.to_uppercase()),
            (&other, name.to_lowercase()),
        ];
        for (seller, name) in &spellings {
            named(seller, name)
                .await
                .is_problem(409, &[entry("conflict", "name")]);
        }
        world.delete_application(&app).await;
        let [_, (_, upper), (_, lower)] = &spellings;
        let again = named(&other, lower).await;
        assert_eq!(again.status, if stays_taken { 409 } else { 201 }, "{number}");
        named(&one, upper)
            .await
            .is_problem(409, &[entry("conflict", "name")]);
    }
    // Nor does anybody keep it taken by taking names that are like a deleted application's id.
    for name in ["Nice Name", "Nicer Name"] {
        let app = world
            .register(&one, json!({"name": name, "purpose": "own_use"}))
            .await;
        world.delete_application(&app).await;
        let like_id = world
            .register(&one, json!({"name": app.client_id, "purpose": "own_use"}))
            .await;
        world.delete_application(&like_id).await;
        assert_eq!(named(&other, name).await.status, 201);
    }
}

#[tokio::test]
async fn a_seller_has_50_applications_at_most_and_the_panel_lists_them_in_pages() {
    let world = world().await;
    let mut member = world.member().await;
    let path = format!("/sellers/{}/applications", member.seller.id);
    for _ in 0..44 {
        world.office_made(&path, &world.registration(json!({}))).await;
    }
    // At once: the number is exact.
    let posts = (0..10).map(|_| {
        let post = world.office(Method::POST, &path);
        post.json(&world.registration(json!({})))
    });
    let answers = at_once(posts).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 409)), (6, 4));
    let form = member.registration("One Too Many").await;
    let page = member.browser.submit(&form).await.expect(409);
    page.shows("<a href=\"#main\">You have as many applications as allowed");
    let names = |page: &Page| page.html.matches("<li class=\"card row\">").count();
    let page = member.browser.page("/panel/applications").await;
    assert_eq!(names(&page), 50);
    page.hides("rel=\"next\"");
    // One deleted makes room for one.
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    let path_of = |n: usize| format!("/applications/{}", text(&made[n].json(), "client_id"));
    world.office_delete(&path_of(0)).await.expect(204);
    member.browser.submit(&form).await.expect(200);
    let full = world.office_post(&path, &world.registration(json!({}))).await;
    full.is_problem(409, &[whole("conflict")]);
    // Neither others' applications are listed, nor those that were deleted or disconnected.
    let owner = world.seller().await;
    world.application(&owner, &["offers:read"]).await;
    let mut partners = Vec::new();
    for _ in 0..3 {
        let partner = world.partner(&owner, &["offers:read"]).await;
        world.pair(&mut member.browser, &partner, "offers:read").await;
        partners.push(partner);
    }
    let [partner, deleted, disconnected] = partners.try_into().unwrap();
    world.delete_application(&deleted).await;
    let page = member.browser.disconnect(&disconnected.client_id).await;
    page.shows("was disconnected");
    let listed = pages(&format!("{path}?limit=30"), async |page: &str| {
        world.office_read(page).await
    })
    .await;
    let listed = listed.iter().flat_map(|page| page["items"].as_array().unwrap());
    let (own, connected): (Vec<_>, Vec<_>) = listed.partition(|one| one["connected_at"].is_null());
    assert_eq!((own.len(), connected.len()), (50, 1));
    assert_eq!(connected[0]["client_id"], partner.client_id);
    let foreign = world.office_get(&format!("{path}?after=x")).await;
    foreign.invalid("after");
}

#[tokio::test]
async fn a_seller_registers_10_applications_in_an_hour_over_all_processes_and_sees_all_pages() {
    let limits = [
        ("PANEL__APPLICATIONS_PER_SELLER", "200"),
        ("PANEL__REGISTRATIONS_PER_HOUR", "3"),
    ];
    let world = world_with(&limits).await;
    let clock = world.stop_clock("2040-01-01T12:40:00Z").await;
    let mut member = world.member().await;
    let second = world.another().await;
    let mut elsewhere = Visitor::new(&world.client, &second.base_url);
    elsewhere.cookies.clone_from(&member.browser.cookies);
    let mut posts = Vec::new();
    for n in 0..8 {
        let form = member.registration(&format!("Label Printer {n}")).await;
        let browser = if n % 2 == 0 { &member.browser } else { &elsewhere };
        posts.push(browser.posting(&form));
    }
    let answers = at_once(posts).await;
    assert_eq!((count_of(&answers, 303), count_of(&answers, 429)), (3, 5));
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), Some("1200"));
    assert!(String::from_utf8_lossy(&refused.bytes).contains("Wait 20 minutes"));
    // Not in the back office.
    for _ in 0..98 {
        world.application(&member.seller, &["offers:read"]).await;
    }
    clock.advance(TimeDelta::minutes(20)).await;
    let form = member.registration("Another Hour").await;
    member.browser.post(&form).await.expect(303);
    let (mut path, mut seen) = ("/panel/applications".to_owned(), Vec::new());
    loop {
        let page = member.browser.page(&path).await;
        seen.push(page.html.matches("<li class=\"card row\">").count());
        let Some((before, _)) = page.html.split_once("\" rel=\"next\"") else {
            break;
        };
        before.rsplit_once("href=\"").unwrap().1.clone_into(&mut path);
    }
    assert_eq!(seen, [50, 50, 2]);
}

#[tokio::test]
async fn limit_and_scopes_are_changed_within_their_ranges() {
    let world = world().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let id = &app.client_id;
    // If a part is invalid, nothing is applied.
    let table = r#"
        {"rate_limit": 10000001}  => rate_limit
        {"rate_limit": 1.5}       => rate_limit
        {"scopes": []}            => scopes
        {"scopes": null}          => scopes
        {"name": "Other", "rate_limit": 0}        => rate_limit name
        {"rate_limit": 5, "scopes": ["nothing"]}  => scopes[0]"#;
    all_invalid_changes(table, &json!({}), async |changes| world.adjust(id, changes).await).await;
    let token = world.token(&app).await;
    let limit = async |path: &str| world.get(&token, path).await.number("x-ratelimit-limit");
    assert_eq!(limit("/v1/me").await, 600);
    for good in [1_i64, 10_000_000] {
        let changes = json!({"rate_limit": good, "scopes": ["orders:read", "offers:read"]});
        world.adjust(id, &changes).await.expect(200);
        assert_eq!(limit("/v1/offers?limit=1").await, good);
    }
    // `null` restores the service's default.
    let reset = world.adjust(id, &json!({"rate_limit": null})).await.expect(200);
    assert_eq!(reset.json()["rate_limit"], 600);
    assert_eq!(limit("/v1/me").await, 600);
    let unknown = world.adjust("psa_unknown", &json!({"rate_limit": 5})).await;
    unknown.refused(404, "not_found");
}

#[tokio::test]
async fn the_operator_moves_an_application_between_its_states() {
    let world = world_of_consent().await;
    let seller = world.seller().await;
    let app = world.register(&seller, json!({"purpose": "other"})).await;
    for (step, to, token) in [
        ("suspension", None, 200),
        ("acceptance", Some("active"), 200),
        ("suspension", Some("suspended"), 401),
        ("acceptance", None, 401),
        ("reinstatement", Some("active"), 200),
        ("reinstatement", Some("active"), 200),
    ] {
        let answer = world.move_application(&app.client_id, step).await;
        match to {
            Some(to) => assert_eq!(answer.expect(200).json()["status"], to),
            None => answer.is_problem(409, &[whole("conflict")]),
        }
        assert_eq!(world.token_answer(&app).await.status, token, "{step}");
    }
    for _ in 0..2 {
        world.set_scopes(&app, &["orders:read"]).await;
    }
    // A deleted application is gone.
    let path = format!("/applications/{}", app.client_id);
    assert!(world.office_delete(&path).await.expect(204).bytes.is_empty());
    for answer in [
        world.office_delete(&path).await,
        world.adjust(&app.client_id, &json!({"rate_limit": 5})).await,
        world.move_application(&app.client_id, "acceptance").await,
    ] {
        answer.refused(404, "not_found");
    }
    // Each change is logged, and what changes nothing is not.
    let logged = "select count(*) from audit_log where actor = 'operator' and subject = $1 and action in (\
        'application.accepted', 'application.suspended', 'application.reinstated', 'application.changed', \
        'application.deleted')";
    assert_eq!(world.count(logged, &[&app.client_id]).await, 5);
}

/// What the back office says of an application's scopes: those in effect, and those asked for.
async fn scopes(world: &World, app: &Application) -> [Value; 2] {
    let app = world
        .office_read(&format!("/applications/{}", app.client_id))
        .await;
    ["scopes", "requested_scopes"].map(|member| app[member].clone())
}

#[tokio::test]
async fn scopes_beyond_what_was_granted_are_asked_for_and_count_once_accepted() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let app = world
        .partner(&member.seller, &["offers:read", "orders:read"])
        .await;
    world.set_scopes(&app, &["offers:read"]).await;
    let path = format!("/panel/applications/{}", app.client_id);
    let form = member.browser.filled(&path, "scopes", "offers:read").await;
    let page = member.browser.sent(&form.and("scopes", "orders:read")).await;
    page.shows("Asked for, not granted yet");
    let asked = [json!(["offers:read"]), json!(["orders:read"])];
    assert_eq!(scopes(&world, &app).await, asked);
    let token = world.token(&app).await;
    world
        .refuses(&token, "/v1/orders", 403, "insufficient_scope")
        .await;
    let acceptance = format!("/applications/{}/acceptance", app.client_id);
    for (body, names) in [
        ("{\"scopes\": [\"offers:read\"]}", 409),
        ("{\"scopes\": []}", 400),
        ("{\"scope\": []}", 400),
    ] {
        let answer = world
            .office_post(&acceptance, &body.parse().unwrap())
            .await
            .expect(names);
        let names_it = String::from_utf8_lossy(&answer.bytes).contains("orders:read");
        assert_eq!(names_it, names == 409, "{answer:?}");
    }
    assert_eq!(scopes(&world, &app).await, asked);
    // A form from before the acceptance is refused, and shows what has changed.
    let stale = member
        .browser
        .filled(&path, "description", "Prints labels.")
        .await;
    let accepted = world
        .office_post(&acceptance, &json!({"scopes": ["orders:read"]}))
        .await;
    assert_eq!(accepted.expect(200).json()["requested_scopes"], json!([]));
    world.office_done(&acceptance).await;
    let granted = [json!(["offers:read", "orders:read"]), json!([])];
    assert_eq!(scopes(&world, &app).await, granted);
    world.read(&world.token(&app).await, "/v1/orders").await;
    let page = member.browser.submit(&stale).await.expect(409);
    page.shows("id=\"scopes-error\"");
    page.hides("id=\"description-error\"");
    let anew = page.form(&path);
    assert_eq!(anew.value("description"), Some("Prints labels."));
    // Below the ceiling nobody is asked, and a form that is sent twice is no conflict.
    let narrowed = anew.with("scopes", "orders:read");
    for _ in 0..2 {
        member.browser.sent(&narrowed).await;
    }
    assert_eq!(scopes(&world, &app).await, [json!(["orders:read"]), json!([])]);
    for kind in ["application.scopes_requested", "application.changed"] {
        let items = world.count_in_feed(kind, &app.client_id).await;
        assert_eq!(items, usize::from(kind.ends_with("requested")), "{kind}");
    }
}
