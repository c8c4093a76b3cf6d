//! `admin`: operators' tokens, tokens, connections, deliveries and the audit log.

use blackbox::{
    Expect, Finished, Received, Receiver, Reply, World, events, line, local_receivers, offer_id, run,
    run_fed, soon_again,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{PROGRAM, cli, world};

/// Counts deliveries that were given up.
const GIVEN_UP: &str =
    "select count(*) from deliveries where attempt = 6 and delivered_at is null and due_at is null";

/// Runs an `admin` command over a world's database.
pub(crate) async fn admin(world: &World, words: &str) -> Finished {
    cli(world, &format!("admin {words}")).await
}

/// The JSON output of an `admin` command.
pub(crate) async fn admin_json(world: &World, words: &str) -> Vec<Value> {
    json_lines(&admin(world, &format!("{words} --json")).await.success())
}

fn json_lines(finished: &Finished) -> Vec<Value> {
    let lines = finished.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The audit log from the command line, newest first.
pub(crate) async fn audit(world: &World, options: &str) -> Vec<Value> {
    admin_json(world, &format!("audit list {options}")).await
}

/// Asserts the newest audit entry about a subject, made by the command line.
async fn is_audited(world: &World, subject: &str, action: &str) {
    let entry = &audit(world, &format!("--about {subject} --limit 1")).await[0];
    let found = (&entry["subject"], &entry["actor"]["kind"], &entry["action"]);
    assert_eq!(found, (&json!(subject), &json!("command_line"), &json!(action)));
}

fn actions(entries: &[Value]) -> Vec<&str> {
    let actions = entries.iter().map(|entry| entry["action"].as_str());
    actions.map(Option::unwrap).collect()
}

/// The status with which the back office answers a request with this token.
async fn office(world: &World, token: &str) -> u16 {
    let url = format!("{}/sellers", world.server.backoffice_url);
    world.client.get(&url).bearer(token).send().await.status
}

async fn revoke(world: &World, lines: &str) -> Finished {
    let command = ["admin", "tokens", "revoke", "--stdin", "--json"];
    let environment = [("DATABASE_URL", world.database.url())];
    run_fed(PROGRAM, &command, &environment, lines).await
}

#[tokio::test]
async fn an_operator_token_is_made_listed_and_revoked() {
    let world = world().await;
    let made = admin(&world, "operator-tokens create --name feed")
        .await
        .success();
    let token = made.stdout.trim();
    assert!(token.starts_with("ps_op_") && !token.contains(char::is_whitespace));
    assert_eq!(office(&world, token).await, 200);
    let list = admin(&world, "operator-tokens list").await.success();
    assert!(!list.output().contains(token) && list.stdout.contains("feed"));
    let listed = admin_json(&world, "operator-tokens list").await;
    let id = listed.iter().find(|one| one["name"] == "feed").unwrap()["id"].as_str();
    let revoked = admin_json(&world, &format!("operator-tokens revoke {}", id.unwrap())).await;
    assert_eq!(revoked, [json!({"id": id, "revoked": true})]);
    assert_eq!(office(&world, token).await, 401);
    world.office_get("/sellers").await.expect(200);
    let made = admin_json(&world, "operator-tokens create ci").await.remove(0);
    assert_eq!(made["name"], "ci");
    assert_eq!(office(&world, made["token"].as_str().unwrap()).await, 200);
    let listed = admin_json(&world, "operator-tokens list").await;
    let ci = listed.iter().find(|one| one["name"] == "ci").unwrap();
    assert!(ci["used_at"].is_string() && ci["expires_at"].is_null(), "{ci}");
    assert_eq!(ci["scopes"], json!(["read", "write"]));
    // A leaked token is revoked without its id.
    let leaked = made["token"].as_str().unwrap();
    let revoked = [json!({"line": 1, "operator_token": made["id"], "revoked": true})];
    for _ in 0..2 {
        let done = revoke(&world, leaked).await.success();
        assert_eq!(json_lines(&done), revoked);
    }
    assert_eq!(office(&world, leaked).await, 401);
    is_audited(&world, made["id"].as_str().unwrap(), "operator_token.revoked").await;
    // That is no use of it.
    let unused = admin(&world, "operator-tokens create unused").await.success();
    revoke(&world, unused.stdout.trim()).await.success();
    let listed = admin_json(&world, "operator-tokens list").await;
    let unused = listed.iter().find(|one| one["name"] == "unused").unwrap();
    assert!(
        unused["used_at"].is_null() && unused["revoked_at"].is_string(),
        "{unused}"
    );

    let unknown = format!("revoke {}", offer_id(1));
    for (wrong, code) in [
        (unknown.as_str(), 3),
        ("revoke x", 2),
        ("create", 2),
        ("create --name", 2),
        ("create one --name two", 2),
        ("create one --expires-in 0s", 2),
        ("create one --expires-in soon", 2),
    ] {
        let wrong = format!("operator-tokens {wrong}");
        admin(&world, &wrong).await.ended(code);
    }
    let environment = [("DATABASE_URL", world.database.url())];
    let unnamed = ["admin", "operator-tokens", "create", ""];
    run(PROGRAM, &unnamed, &environment).await.failure();
    for words in ["import offers - --seller abc", "admin operator-tokens revoke abc"] {
        let refused = cli(&world, words).await.failure().stderr;
        let has_example = refused.contains("such as 0197a5c4-");
        assert!(has_example && !refused.contains("invalid length"), "{refused}");
    }
}

#[tokio::test]
async fn an_operator_token_expires_and_may_be_for_reading_alone() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let create = "operator-tokens create report --read-only --expires-in 1h";
    let made = admin_json(&world, create).await.remove(0);
    let token = made["token"].as_str().unwrap();
    let of = |method, path: &str| {
        let url = format!("{}{path}", world.server.backoffice_url);
        world.client.request(method, &url).bearer(token)
    };
    of(Method::GET, "/sellers").send().await.expect(200);
    let seller = json!({"name": "K", "email": "k@shop.example"});
    let refused = of(Method::POST, "/sellers").json(&seller).send().await;
    refused.refused(403, "insufficient_scope");
    of(Method::GET, "/nothing").send().await.refused(404, "not_found");
    clock.advance(TimeDelta::minutes(61)).await;
    assert_eq!(office(&world, token).await, 401);
    let listed = admin_json(&world, "operator-tokens list").await;
    let listed = listed.iter().find(|one| one["name"] == "report").unwrap();
    assert_eq!(listed["scopes"], json!(["read"]));
    assert!(
        listed["expires_at"].as_str() > listed["used_at"].as_str(),
        "{listed}"
    );
}

#[tokio::test]
async fn operators_actions_are_in_the_audit_log() {
    let mut world = world().await;
    let made = admin(&world, "operator-tokens create shop").await.success();
    let entries = audit(&world, "").await;
    // The first entry is the world's own token.
    assert_eq!(actions(&entries), ["operator_token.made", "operator_token.made"]);
    assert_eq!(entries[0]["actor"], json!({"kind": "command_line", "id": null}));
    assert_eq!(entries[0]["address"], Value::Null);
    let token = entries[0]["subject"].as_str().unwrap();
    assert!(made.stderr.contains(token), "{}", made.stderr);

    made.stdout.trim().clone_into(&mut world.server.operator_token);
    let seller = world.seller().await.id;
    for _ in 0..2 {
        let closure = format!("/sellers/{seller}/closure");
        world.office_post(&closure, &json!({})).await.expect(200);
    }
    let about = audit(&world, &format!("--about {seller}")).await;
    assert_eq!(actions(&about), ["seller.closed", "seller.registered"]);
    for entry in &about {
        assert_eq!(entry["actor"], json!({"kind": "operator", "id": token}));
        assert_eq!(entry["address"], "127.0.0.1");
        assert_eq!(entry["subject"], json!(seller));
        assert!(entry["at"].as_str().unwrap().ends_with('Z'));
    }
    let by = audit(&world, &format!("--about {token}")).await;
    let all = ["seller.closed", "seller.registered", "operator_token.made"];
    assert_eq!(actions(&by), all, "what the token did, and what was done to it");
    let revoke = format!("operator-tokens revoke {token}");
    admin(&world, &revoke).await.success();
    admin(&world, &revoke).await.ended(3);
    let first = audit(&world, "--limit 2").await;
    assert_eq!(actions(&first), ["operator_token.revoked", "seller.closed"]);
    let next = audit(&world, &format!("--before {}", first[1]["id"].as_str().unwrap())).await;
    assert_eq!(
        actions(&next),
        ["seller.registered", "operator_token.made", "operator_token.made"]
    );

    let [until, since] = [0, 1].map(|n| entries[n]["at"].as_str().unwrap());
    let between = audit(&world, &format!("--since {since} --until {until}")).await;
    assert_eq!(between, entries[1..]);
    let fill = "insert into audit_log (id, at, actor, action, subject) \
        select gen_random_uuid(), now(), 'command_line', 'seller.closed', 'many' from generate_series(1, 1001)";
    world.execute(fill).await;
    assert_eq!(audit(&world, "--about many --all").await.len(), 1001);

    assert_eq!(audit(&world, "--about 1").await, about);
    let list = format!("audit list --about {seller}");
    let table = admin(&world, &list).await.success();
    let lines: Vec<_> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    let column = lines[0].find("ACTION").unwrap();
    let action = &lines[1][column..];
    assert!(action.starts_with("seller.closed "), "{}", table.stdout);
    assert!(!table.output().contains("ps_op_") && !table.output().contains("shop.example"));

    // A subject without entries is not an error; one that can be none is.
    let none = format!("audit list --about {}", offer_id(9));
    admin(&world, &none).await.success();
    let unknown = admin(&world, "audit list --about nonsense").await.ended(3);
    assert!(unknown.stderr.contains("\"nonsense\""), "{}", unknown.stderr);
    let day = admin(&world, "audit list --since 2027-01-15").await.ended(2);
    assert!(day.stderr.contains("T12:00:00Z"), "{}", day.stderr);
}

#[tokio::test]
async fn a_buyers_orders_are_found_by_the_address_until_they_are_erased() {
    let world = world().await;
    let mut lines = Vec::new();
    for seller in [world.seller().await, world.seller().await] {
        lines.push(line(&seller, &world.any_offer(&seller, json!({})).await, 1));
    }
    let mut numbers = Vec::new();
    for email in ["Ewa@Buyer.example", "ewa@buyer.example", "eva@buyer.example"] {
        let order = world.unpaid(&lines, json!({"buyer": {"email": email}})).await;
        numbers.push((order.number, order.id));
    }
    let find = async || admin_json(&world, "orders find --buyer-email ewa@BUYER.example").await;
    let found = find().await;
    let expected = [1, 0].map(|n| {
        let ((number, id), placed_at) = (&numbers[n], &found[1 - n]["placed_at"]);
        json!({"order_number": number, "order_id": id, "placed_at": placed_at})
    });
    assert_eq!(found, expected);
    world.move_order(&numbers[0].0, "buyer-erasure").await.expect(200);
    assert_eq!(find().await.len(), 1);
}

#[tokio::test]
async fn connections_are_listed_with_their_applications_owner() {
    let world = world().await;
    let partner = world.partner(&world.seller().await, &["offers:read"]).await;
    let mut member = world.member().await;
    world.pair(&mut member.browser, &partner, "offers:read").await;
    let listed = admin_json(&world, &format!("connections list {}", member.seller.id)).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["client_id"], partner.client_id);
    assert_eq!(listed[0]["scopes"], json!(["offers:read"]));
    assert_eq!(listed[0]["owner_name"], "Kettles & Co");
    let table = admin(&world, &format!("connections list {}", member.seller.email)).await;
    assert_eq!(table.success().stdout.lines().count(), 2);
}

#[tokio::test]
async fn tokens_from_stdin_are_revoked_line_by_line_and_never_printed() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(world.token(&application).await);
    }
    let [found, first, second, other] = tokens.try_into().unwrap();
    let [personal, last] = [(); 2].map(|()| world.personal_token(&seller, &["offers:read"]));
    let (personal, last) = (personal.await.token, last.await.token);
    for (token, line_end) in [(&found, "\n"), (&personal, "")] {
        assert!(world.works(token).await);
        let done = revoke(&world, &format!("{token}{line_end}")).await.success();
        assert!(!done.output().contains(token.as_str()), "{}", done.output());
        assert!(!world.works(token).await);
        let family = json_lines(&done)[0]["family"].clone();
        is_audited(&world, family.as_str().unwrap(), "token.revoked").await;
    }
    revoke(&world, &found).await.success();
    let lines = format!("{first}\r\n\n  {second}\n");
    let done = revoke(&world, &lines).await.success();
    let lines = json_lines(&done).into_iter();
    let lines = lines.map(|line| (line["line"].clone(), line["revoked"].clone()));
    assert!(lines.eq([(json!(1), json!(true)), (json!(3), json!(true))]));
    assert!(!world.works(&first).await && !world.works(&second).await);

    // Invalid values are rejected first. A token that is already revoked is no error.
    let unknown = format!("ps_at_{}", "A".repeat(64));
    for (wrong, code) in [("nonsense", 2), (unknown.as_str(), 3)] {
        let before = audit(&world, "").await.len();
        let lines = format!("{wrong}\n{last}\n{first}\n");
        let done = revoke(&world, &lines).await.ended(code);
        let tokens = [wrong, &last, &first];
        assert!(!tokens.iter().any(|token| done.output().contains(token)));
        let lines = json_lines(&done).into_iter();
        assert!(lines.map(|line| line["revoked"] == true).eq([false, true, true]));
        assert!(!world.works(&last).await);
        let new = audit(&world, "").await.len() - before;
        assert_eq!(new, usize::from(code == 2), "only changes are audited");
    }
    let before = audit(&world, "").await.len();
    for (text, code) in [
        (unknown.as_str(), 3),
        ("", 2),
        (&application.client_secret, 2),
        ("ps_op_cut", 2),
        (&format!("ps_op_{}", "A".repeat(43)), 3),
    ] {
        let refused = revoke(&world, text).await.ended(code).output();
        assert!(text.is_empty() || !refused.contains(text), "{refused}");
    }
    for rest in ["", &unknown, "--seller 1 --application x --yes"] {
        admin(&world, &format!("tokens revoke {rest}")).await.ended(2);
    }
    assert_eq!(audit(&world, "").await.len(), before);
    let environment = [("DATABASE_URL", world.database.url())];
    let command = ["admin", "tokens", "revoke", "--stdin"];
    // What is malformed determines the exit code before what is unknown.
    let lines = format!("{first}\nnonsense\n{unknown}\n");
    let table = run_fed(PROGRAM, &command, &environment, &lines).await.ended(2);
    assert!(table.stdout.contains("line 1: revoked") && table.stdout.contains("line 2: not revoked"));
    assert!(world.works(&other).await);

    let mut member = world.member().await;
    let partner = world.partner(&seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    let next = world.refreshed(&partner, &pair.refresh).await;
    revoke(&world, &pair.access).await.success();
    assert!(
        !world.works(&pair.access).await && world.works(&next.access).await,
        "it alone is revoked"
    );
    let before = audit(&world, "").await.len();
    revoke(&world, &next.refresh).await.success();
    assert!(!world.works(&next.access).await, "the family is revoked");
    let both = format!("{}\n{}\n", next.access, next.refresh);
    revoke(&world, &both).await.success();
    assert_eq!(
        audit(&world, "").await.len(),
        before + 1,
        "what had ended is not logged"
    );
}

#[tokio::test]
async fn all_tokens_of_an_application_or_a_seller_are_revoked() {
    let world = world().await;
    let (one, two) = (world.seller().await, world.seller().await);
    let register = async |name: &str| world.register(&one, json!({"name": name})).await;
    let (first, second) = (register("First").await, register("Second").await);
    let tokens = [world.token(&first).await, world.token(&first).await];
    let others = world.token(&second).await;
    let personal = world.personal_token(&one, &["offers:read"]).await.token;
    let foreign = world.personal_token(&two, &["offers:read"]).await.token;
    let mut browser = world.visitor();
    let form = browser.form(&world.sign_in_link(&one).await).await;
    browser.sent(&form).await;
    let link = world.sign_in_link(&one).await;

    admin(&world, "tokens revoke --application First").await.ended(2);
    let done = admin_json(&world, "tokens revoke --application First --yes").await;
    assert_eq!(done, [json!({"of": first.client_id, "revoked": true})]);
    assert!(!world.works(&tokens[0]).await && !world.works(&tokens[1]).await);
    assert!(world.works(&others).await && browser.is_in().await);
    world.visit(&link).await.expect(200);
    is_audited(&world, &first.client_id, "tokens.revoked").await;

    let done = admin_json(&world, "tokens revoke --seller 1 --yes").await;
    assert_eq!(done, [json!({"of": one.id, "revoked": true})]);
    assert!(!world.works(&others).await && !world.works(&personal).await);
    assert!(world.works(&foreign).await && !browser.is_in().await);
    world.visit(&link).await.expect(410);
    is_audited(&world, &one.id, "tokens.revoked").await;
    assert!(world.works(&world.token(&first).await).await);
}

#[tokio::test]
async fn exhausted_deliveries_are_listed_and_delivered_again() {
    let world = World::with(PROGRAM, soon_again).await;
    let integration = world.integration().await;
    let (seller, token) = (&integration.seller, &integration.token);
    let receiver = Receiver::start().await;
    receiver.answers(Reply::Status(503));
    let hook = world.hook(token, &receiver).await;
    let subscriptions = admin_json(&world, &format!("webhooks subscriptions {}", seller.id)).await;
    let [subscription] = &subscriptions[..] else {
        panic!("{subscriptions:?}")
    };
    let found = ["id", "url", "active"].map(|field| &subscription[field]);
    assert_eq!(found, [&json!(hook.id), &json!(receiver.url), &json!(true)]);
    let client = &integration.application.client_id;
    let of_application = format!("webhooks subscriptions --application {client}");
    assert_eq!(admin_json(&world, &of_application).await, subscriptions);

    let order = world.paid_order(&integration.trader()).await;
    world
        .until_count("both deliveries are given up", GIVEN_UP, &[], 2)
        .await;
    let exhausted = admin_json(&world, "webhooks exhausted").await;
    assert_eq!(admin_json(&world, "webhooks pending").await, [json!(null); 0]);
    let newest = &exhausted[0];
    let expected = json!({
        "id": newest["id"], "seller_id": seller.id, "subscription_id": hook.id, "event": newest["event"],
        "order_id": order.id, "order_number": order.number, "offer_id": null, "failure": null,
        "created_at": newest["created_at"], "state": "exhausted", "attempts": 6, "next_retry_at": null,
        "suspended": false, "delivered_at": null, "response_status": 503, "duration_ms": newest["duration_ms"], "error": null, "application": subscription["application"], "url": receiver.url,
    });
    assert_eq!(*newest, expected);
    let id = newest["id"].as_str().unwrap();
    let other = world.any_order(&world.seller().await).await;
    let list = async |of: &str| admin_json(&world, &format!("webhooks deliveries --order {of}")).await;
    assert_eq!(list(&format!("{} --failed", order.number)).await, exhausted);
    let first = format!("{} --event order.created --subscription {}", order.id, hook.id);
    assert_eq!(list(&first).await, exhausted[1..]);
    assert_eq!(list(&other.id).await, [json!(null); 0]);
    admin(&world, "webhooks deliveries --order 9-9").await.ended(3);
    // Of all sellers.
    let failed = "webhooks deliveries --event order.created --failed";
    assert_eq!(admin_json(&world, failed).await, exhausted[1..]);
    let failures = |log: &str| log.matches("a delivery attempt failed").count();
    let log = world.server.log_with(|log| failures(log) == 12).await;
    let of_it = |event: &Value| event["delivery"] == id && event["attempt"] == 6;
    let sixth = events(&log)
        .into_iter()
        .map(|event| event["fields"].clone())
        .find(of_it)
        .unwrap();
    let told = (&sixth["subscription"], &sixth["failure"], sixth.get("next_in_s"));
    assert_eq!(told, (&json!(hook.id), &json!("503"), None));
    assert!(receiver.url.contains(sixth["host"].as_str().unwrap()) && !log.contains(&receiver.url));
    let before = admin_json(&world, &format!("webhooks exhausted --before {id}")).await;
    assert_eq!(before, exhausted[1..]);
    let of = format!("--seller 1 --subscription {}", hook.id);
    assert_eq!(
        admin_json(&world, &format!("webhooks exhausted {of}")).await,
        exhausted
    );
    world.seller().await;
    let again = "deliver-again --since 2026-01-15T08:00:00Z";
    for kind in ["exhausted", "pending", "deliveries", again] {
        let unknown = format!("webhooks {kind} --subscription {id}");
        let refused = admin(&world, &unknown).await.ended(3);
        assert!(refused.stderr.contains(id), "{}", refused.output());
        let of_another = format!("webhooks {kind} --seller 2 --subscription {}", hook.id);
        admin(&world, &of_another).await.ended(3);
    }

    let seen = receiver.count();
    receiver.answers(Reply::Status(200));
    let again = format!("webhooks deliver-again {id} {of}");
    let new = admin_json(&world, &again).await.remove(0);
    let arrived = receiver.has(seen + 1).await.pop().unwrap();
    assert_eq!((&new["delivery_id"], arrived.delivery()), (&newest["id"], id));
    assert_eq!(arrived.json()["event"], newest["event"]);
    assert!(arrived.json().to_string().contains(&order.number));
    is_audited(&world, id, "delivery.repeated").await;
    admin(&world, "webhooks deliver-again").await.ended(2);
    let unknown = format!("webhooks deliver-again {} {of}", hook.id);
    admin(&world, &unknown).await.ended(3);
    world.moved(&integration.application, "suspension").await;
    assert_eq!(list(&first).await, exhausted[1..], "it does not wait");
}

#[tokio::test]
async fn deliveries_that_wait_for_a_reinstatement_are_told_from_those_that_are_due() {
    let world = World::with(PROGRAM, |options| {
        local_receivers(options).set("SELLER_API__SERVER__WORKERS", "none")
    });
    let world = world.await;
    let (own, _receiver, _) = world.subscribed().await;
    let order = world.paid_order(&own.trader()).await;
    let list = format!("webhooks deliveries --order {}", order.number);
    for (step, shown, other) in [
        ("suspension", "now", "suspended"),
        ("reinstatement", "suspended", "now"),
    ] {
        let table = admin(&world, &list).await.success().stdout;
        assert!(table.contains(shown) && !table.contains(other), "{table}");
        let rows = admin_json(&world, &list).await;
        let told = |row: &Value| row["state"] == "queued" && row["suspended"] == json!(shown == "suspended");
        assert!(rows.len() == 2 && rows.iter().all(told), "{rows:?}");
        assert_eq!(admin_json(&world, "webhooks pending").await, rows);
        world.moved(&own.application, step).await;
    }
    world.moved(&own.application, "suspension").await;
    let unannounced = world.any_order(&own.seller).await;
    let list = format!("webhooks deliveries --order {}", unannounced.number);
    let none = admin(&world, &list).await.success();
    assert!(none.stderr.contains("in the journal alone"), "{}", none.output());
    let none = admin(&world, &format!("{list} --failed")).await.success();
    assert_eq!(none.stderr, "");
}

#[tokio::test]
async fn deliveries_given_up_since_an_instant_are_delivered_again_once_and_in_order() {
    let world = World::with(PROGRAM, soon_again).await;
    let (integration, receiver, _) = world.subscribed().await;
    receiver.answers(Reply::Status(503));
    world.paid_order(&integration.trader()).await;
    let given_up = async |count: i64| {
        world.until_count("they are given up", GIVEN_UP, &[], count).await;
        admin_json(&world, "webhooks exhausted").await
    };
    let exhausted = given_up(2).await;
    let since = async |instant: &Value| {
        let again = format!("webhooks deliver-again --since {}", instant.as_str().unwrap());
        admin_json(&world, &again).await
    };
    assert_eq!(since(&json!("2999-01-01T00:00:00Z")).await, [json!(null); 0]);
    // The second one of them, which fails again.
    let seen = receiver.count();
    let repeated = since(&exhausted[0]["created_at"]).await;
    assert_eq!(repeated, [json!({"delivery_id": exhausted[0]["id"]})]);
    receiver.has(seen + 6).await;
    given_up(2).await;
    let seen = receiver.count();
    receiver.answers(Reply::Status(200));
    let all = since(&exhausted[1]["created_at"]).await;
    let arrived = receiver.has(seen + 2).await;
    let event = |again: &Value| {
        let is_it = |one: &&Received| again["delivery_id"] == one.delivery();
        arrived[seen..].iter().find(is_it).unwrap().json()["event"].clone()
    };
    let expected = [&exhausted[1], &exhausted[0]].map(|given_up| given_up["event"].clone());
    assert_eq!(all.iter().map(event).collect::<Vec<_>>(), expected);
    assert_eq!(since(&exhausted[1]["created_at"]).await, [json!(null); 0]);
}
