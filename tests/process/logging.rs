//! The log: one line for each request.

use blackbox::{CALLBACK, Expect as _, Pair, World, cases, events, eventually, logs_request, requests};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::Answer;

use crate::{world, world_with};

/// The one line of the request with this answer.
async fn line_of(world: &World, answer: &Answer) -> Value {
    let trace_id = answer.must("x-trace-id");
    let log = requests(&world.server.log_with(|log| logs_request(log, trace_id)).await);
    let lines = log.iter().filter(|line| line["trace_id"] == trace_id);
    let [line] = lines.collect::<Vec<_>>()[..] else {
        panic!("not one line: {log:?}")
    };
    line.clone()
}

#[tokio::test]
async fn each_request_has_one_line_with_trace_id_caller_route_ids_status_and_duration() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let client_id = world.read(&token, "/v1/me").await["app"]["client_id"].clone();
    let id = world.offer(&seller, 1, json!({})).await;
    let table = "
        GET /v1/me              => /v1/me 200 -
        GET /v1/offers?limit=5  => /v1/offers 200 -
        GET /v1/offers?limit=x  => /v1/offers 400 validation_error
        HEAD /v1/offers/OFFER   => /v1/offers/{id} 200 -
        GET /v1/offers/OFFER    => /v1/offers/{id} 200 -
        GET /v1/offers/x%22     => /v1/offers/{id} 404 not_found
        GET /v1/nothing/OFFER   => - 404 not_found
        POST /oauth/token       => /oauth/token 400 invalid_request
        GET /nothing            => - 404 not_found";
    // Characters that could forge a line, the last one cut in half.
    let agent = format!("Shop/1 \"\tstatus=200\u{85}{}", "ż".repeat(99));
    let shown = format!("Shop/1 \"?status=200??{}", "?".repeat(79));
    for (sent, expected) in cases(&table.replace("OFFER", &id)) {
        let (method, path) = sent.split_once(' ').unwrap();
        let request = world.at(method, path).bearer(&token).without("user-agent");
        let answer = request.header("user-agent", &agent).send().await;
        let line = line_of(&world, &answer).await;
        let error = line["error"].as_str().unwrap_or("-");
        let found = format!("{} {} {error}", line["route"].as_str().unwrap(), line["status"]);
        assert_eq!((found.as_str(), &line["method"]), (expected, &json!(method)));
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!(line["client_address"], "127.0.0.1");
        assert_eq!(line["user_agent"], shown);
        let has_token = path.starts_with("/v1");
        assert_eq!(line.get("client_id"), has_token.then_some(&client_id), "{line}");
        assert_eq!(line.get("seller_id"), has_token.then_some(&json!(seller.id)));
        let has_id = expected.contains("{id}") && path.contains(&id);
        assert_eq!(line["ids"].as_str(), has_id.then_some(id.as_str()), "{line}");
    }
    for secret in [token.as_str(), "pss_A7q1uX5nptCdAkUw"] {
        let request = world.at("GET", "/v1/me").bearer(&token).without("user-agent");
        let answer = request
            .header("user-agent", &format!("Shop/1 {secret}"))
            .send()
            .await;
        assert_eq!(line_of(&world, &answer).await["user_agent"], "Shop/1 ");
    }
    let odd = world.at(&"A".repeat(9_000), "/v1/me").bearer(&token).send().await;
    assert_eq!(line_of(&world, &odd).await["method"], "other");
    let answer = world.office_get(&format!("/sellers/{}", seller.id)).await;
    let line = line_of(&world, &answer.expect(200)).await;
    assert!(line.get("otel_trace_id").is_none(), "without a collector: {line}");
    let find = "select id::text from operator_tokens";
    let database = world.database.connect().await;
    let operator: String = database.query_one(find, &[]).await.unwrap().get(0);
    assert_eq!(line["operator_token"], operator);
    assert_eq!((&line["ids"], line.get("client_id")), (&json!(seller.id), None));
    for (number, is_kept) in [("SO-2027-1", true), ("so-1", false), ("SO%0A1", false)] {
        let answer = world.office_get(&format!("/orders/{number}")).await;
        let line = line_of(&world, &answer).await;
        assert_eq!(line["ids"].as_str(), is_kept.then_some(number), "{line}");
    }
    let revoke = "update operator_tokens set revoked_at = now()";
    database.execute(revoke, &[]).await.unwrap();
    let line = line_of(&world, &world.office_get("/sellers").await.expect(401)).await;
    assert_eq!(
        (&line["operator_token"], &line["reason"]),
        (&json!(operator), &json!("revoked"))
    );
}

#[tokio::test]
async fn a_refusal_names_application_seller_and_reason() {
    let world = world().await;
    let (owner, mut member) = (world.seller().await, world.member().await);
    let mut app = world.partner(&owner, &["offers:read"]).await;
    let seller = member.seller.id.clone();
    let pair = world.pair(&mut member.browser, &app, "offers:read").await;
    let own = world.personal_token(&member.seller, &["offers:read"]).await;
    let line = line_of(&world, &world.revoke(&app, &own.token).await.expect(200)).await;
    let named = [&line["client_id"], &line["seller_id"], &line["token_id"]];
    assert_eq!(named, [&app.client_id, &seller, &own.id], "{line}");
    world.revoke_personal(&member.seller, &own).await;
    let (access, refresh) = (&pair.access, &pair.refresh);
    // Known callers whose token is good: what they lack is the error.
    let limit = async |limit: Value| world.adjust(&app.client_id, &json!({"rate_limit": limit})).await;
    let refused = world.get(access, "/v1/orders").await.expect(403);
    limit(json!(1)).await.expect(200);
    let last = eventually("the limit", async || {
        let answer = world.get(access, "/v1/me").await;
        (answer.status == 429).then_some(answer)
    })
    .await;
    for (answer, error) in [(&refused, "insufficient_scope"), (&last, "rate_limited")] {
        let line = line_of(&world, answer).await;
        let named = ["error", "client_id", "seller_id"].map(|name| line[name].as_str().unwrap());
        assert_eq!(named, [error, &app.client_id, &seller], "{line}");
    }
    limit(Value::Null).await.expect(200);
    let mut answers = vec![world.get(&own.token, "/v1/me").await];
    world.moved(&app, "suspension").await;
    answers.push(world.get(access, "/v1/me").await);
    answers.push(world.refresh(&app, refresh).await);
    answers.push(world.token_answer(&app).await);
    world.moved(&app, "reinstatement").await;
    let past = "update access_tokens set expires_at = api_now()";
    world.execute(past).await;
    world.execute(&past.replace("access", "refresh")).await;
    answers.push(world.get(access, "/v1/me").await);
    answers.push(world.refresh(&app, refresh).await);
    app.client_secret.push('x');
    answers.push(world.token_answer(&app).await);
    let expected = "unauthorized revoked member, unauthorized suspended member, invalid_client suspended member, \
        invalid_client suspended owner, unauthorized expired member, invalid_grant expired member, \
        invalid_client credentials owner";
    for (n, (answer, expected)) in answers.iter().zip(expected.split(", ")).enumerate() {
        let line = line_of(&world, answer).await;
        let [error, reason, of] = ["error", "reason", "seller_id"].map(|name| line[name].as_str().unwrap());
        let who = if of == owner.id { "owner" } else { "member" };
        assert_eq!(format!("{error} {reason} {who}"), expected, "{line}");
        assert!(of == owner.id || of == seller, "{line}");
        // The audit log names the personal token so.
        let (name, value) = if n == 0 {
            ("token_id", &own.id)
        } else {
            ("client_id", &app.client_id)
        };
        assert_eq!(line[name], *value, "{line}");
    }
    // Its owner's, whoever presents its credentials.
    let own_use = world.application(&member.seller, &["offers:read"]).await;
    let unknown = world.refresh(&own_use, "unknown").await;
    let page = member.browser.get("/panel/account").await;
    for answer in [&unknown, &page] {
        assert_eq!(line_of(&world, answer).await["seller_id"], seller);
    }
    let log = requests(&world.server.log());
    let is_sign_in = |line: &&Value| line["route"] == "/panel/sign-in" && line["method"] == "POST";
    assert_eq!(log.iter().find(is_sign_in).unwrap()["seller_id"], seller);
}

#[tokio::test]
async fn a_call_of_oauth_names_a_stored_token_and_its_seller_and_a_deleted_application() {
    let world = world_with(&[("OAUTH__TOKEN_LIMIT_PER_CLIENT", "7")]).await;
    let clock = world.stop_clock("2040-01-01T12:00:30Z").await;
    let (owner, mut member) = (world.seller().await, world.member().await);
    let app = world.partner(&owner, &["offers:read"]).await;
    let other = world.partner(&owner, &["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let exchanged = world.exchange(&app, &asking, &code).await;
    let first = Pair::of(exchanged.clone());
    let by_other = world.refresh(&other, &first.refresh).await;
    let refreshed = world.refresh(&app, &first.refresh).await;
    let second = Pair::of(refreshed.clone());
    let (token, last) = second.refresh.split_at(second.refresh.len() - 1);
    let forged = format!("{token}{}", if last == "A" { "B" } else { "A" });
    let mut answers = vec![
        (exchanged, "- - member app"),
        (refreshed, "- - member app"),
        (by_other, "invalid_grant another_client member other"),
        (world.revoke(&other, &second.access).await, "- - member other"),
        (world.revoke(&other, &second.refresh).await, "- - member other"),
        (world.refresh(&app, &forged).await, "invalid_grant unknown - app"),
        (world.revoke(&app, &first.access).await, "- - member app"),
        (
            world.refresh(&app, &first.refresh).await,
            "invalid_grant used member app",
        ),
        (
            world.refresh(&app, &second.refresh).await,
            "invalid_grant revoked member app",
        ),
        (world.revoke(&app, &forged).await, "- - - app"),
        (
            world.revoke(&app, &second.refresh).await,
            "rate_limited - member app",
        ),
        (
            world.revoke(&app, &second.access).await,
            "rate_limited - member app",
        ),
        (world.revoke(&app, &forged).await, "rate_limited - - app"),
    ];
    clock.advance(TimeDelta::minutes(1)).await;
    answers.push((world.token_answer(&app).await, "- - owner app"));
    world.delete_application(&app).await;
    answers.push((
        world.refresh(&app, &second.refresh).await,
        "invalid_client deleted member app",
    ));
    answers.push((world.token_answer(&app).await, "invalid_client deleted owner app"));
    let family = line_of(&world, &answers[0].0).await["token_id"].clone();
    assert!(family.is_string());
    for (answer, expected) in answers {
        let line = line_of(&world, &answer).await;
        let [error, reason] = ["error", "reason"].map(|name| line[name].as_str().unwrap_or("-"));
        let named = |name: &str, known: &[(&str, &str)]| {
            let id = line[name].as_str()?;
            let known = known.iter().find(|(known, _)| *known == id);
            Some(known.expect("nobody else is named").1.to_owned())
        };
        let sellers = [(owner.id.as_str(), "owner"), (&member.seller.id, "member")];
        let applications = [(app.client_id.as_str(), "app"), (&other.client_id, "other")];
        let [seller, client] = [("seller_id", &sellers), ("client_id", &applications)]
            .map(|(name, known)| named(name, known).unwrap_or_else(|| "-".to_owned()));
        assert_eq!(format!("{error} {reason} {seller} {client}"), expected, "{line}");
        let token = (seller == "member").then_some(&family);
        assert_eq!(line.get("token_id"), token, "{line}");
    }
}

#[tokio::test]
async fn a_refused_request_for_consent_names_the_application_and_its_error() {
    let world = world().await;
    let (owner, mut stranger) = (world.seller().await, world.member().await);
    let changes = json!({"purpose": "other", "redirect_uris": [CALLBACK]});
    let pending = world.register(&owner, changes).await;
    let suspended = world.partner(&owner, &["offers:read"]).await;
    world.moved(&suspended, "suspension").await;
    let asking = |client_id: &str| {
        let asking = world.asking(&pending, "offers:read");
        asking.with("client_id", client_id).path()
    };
    let nobody = "psa_00000000000000000000000000000001";
    let denied = stranger.browser.open(&asking(&pending.client_id)).await.answer;
    for (answer, client_id, expected) in [
        (denied, pending.client_id.as_str(), "303 access_denied pending"),
        (
            world.visit(&asking(&suspended.client_id)).await,
            &suspended.client_id,
            "400 invalid_client suspended",
        ),
        (
            world.visit(&asking(nobody)).await,
            nobody,
            "400 invalid_client credentials",
        ),
    ] {
        let line = line_of(&world, &answer).await;
        let [error, reason] = ["error", "reason"].map(|name| line[name].as_str().unwrap_or("-"));
        assert_eq!(format!("{} {error} {reason}", line["status"]), expected, "{line}");
        assert_eq!(line["client_id"], client_id, "{line}");
    }
}

#[tokio::test]
async fn a_failure_whose_client_has_gone_is_logged_once() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let _held = world.open_transaction("select from offers for update").await;
    let patching = world.patching(&trader.token, &offer, &json!({"stock": 1}));
    let patching = patching
        .header("idempotency-key", "k")
        .header("x-request-id", "client-gone");
    let asking = tokio::spawn(patching.try_send());
    world.waiters(1).await;
    asking.abort();
    world.database.block_connections().await;
    let of_it = |log: &str| -> Vec<_> {
        let events = events(log).into_iter();
        events
            .filter(|event| event["target"] != "access" && event.to_string().contains("client-gone"))
            .collect()
    };
    let log = world.server.log_with(|log| !of_it(log).is_empty()).await;
    assert_eq!(of_it(&log).len(), 1, "{:#?}", of_it(&log));
    let server = world.server.log_with(|log| log.contains("not ready")).await;
    assert_eq!(of_it(&server).len(), 1);
}
