//! Every route with every kind of credential. The routes come from the tables that route them, and what is expected from the
//! scope that a route declares, so that a new route is in here by itself.

use adapter_panel::Access;
use blackbox::{Form, Member, Seller, World, run};
use chrono::TimeDelta;
use oauth::Scope;
use reqwest::Method;
use serde_json::json;
use testkit::{Answer, Request};

use crate::PROGRAM;

/// Longer than an access token lives.
const LATER: TimeDelta = TimeDelta::hours(13);

/// A way to show a credential.
#[derive(Debug, Clone)]
enum Shown {
    Nothing,
    /// The whole header `Authorization`.
    Header(String),
    Bearer(String),
    TwoHeaders(String),
    Query(String),
    FormBody(String),
    JsonBody(String),
    Cookie(String),
    OtherHeader(&'static str, String),
}

impl Shown {
    /// The request for a path with the credential in its place.
    fn at(&self, world: &World, method: &str, url: &str) -> Request {
        let method: Method = method.parse().unwrap();
        let asking = |url: &str| world.client.request(method.clone(), url);
        match self {
            Self::Nothing => asking(url),
            Self::Header(value) => asking(url).header("authorization", value),
            Self::Bearer(token) => asking(url).bearer(token),
            Self::TwoHeaders(token) => asking(url).bearer(token).bearer(token),
            Self::Query(token) => asking(&format!("{url}?access_token={token}&token={token}")),
            Self::FormBody(token) => asking(url).form(&format!("access_token={token}&token={token}")),
            Self::JsonBody(token) => asking(url).json(&json!({"access_token": token})),
            Self::Cookie(token) => asking(url).header(
                "cookie",
                &format!("seller_panel={token}; access_token={token}; authorization=Bearer {token}"),
            ),
            Self::OtherHeader(name, token) => asking(url).header(name, token),
        }
    }
}

/// A path of a template: what stands in braces is of the right form, and nobody's.
fn path(template: &str) -> String {
    let mut path = String::new();
    for part in template.split('/').skip(1) {
        let filled = match part {
            "{client_id}" => "psa_01900000000070008000000000000001",
            part if part.starts_with('{') => "01900000-0000-7000-8000-000000000001",
            part => part,
        };
        path = format!("{path}/{filled}");
    }
    path
}

/// Everything that lets somebody in somewhere, or did.
struct Credentials {
    /// What opens nothing on either listener, or not any more.
    dead: Vec<(&'static str, Shown)>,
    /// A living token of each kind, with the scopes that it has.
    living: Vec<(String, String, Vec<Scope>)>,
    /// A living operator's token, and one that was revoked.
    operator: String,
    revoked_operator: String,
    /// Secrets that are no tokens.
    others: Vec<(&'static str, String)>,
    member: Member,
}

async fn operator_token(world: &World, name: &str) -> (String, String) {
    let environment = [("DATABASE_URL", world.database.url())];
    let made = ["admin", "operator-tokens", "create", name];
    let printed = run(PROGRAM, &made, &environment).await.success().output();
    let token = printed.split_whitespace().find(|word| word.starts_with("ps_op_"));
    let id = printed
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(|word| word.parse::<uuid::Uuid>().is_ok());
    (token.unwrap().to_owned(), id.unwrap().to_owned())
}

/// Credentials that work now and will have come to their end by [`LATER`].
async fn ageing(world: &World) -> Vec<(&'static str, Shown)> {
    let member = &mut world.member().await;
    let own = world.application(&member.seller, &["offers:read"]).await;
    let partner = world.partner(&member.seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    vec![
        (
            "an expired client's token",
            Shown::Bearer(world.token(&own).await),
        ),
        ("an expired consented token", Shown::Bearer(pair.access)),
        ("an expired session", Shown::Bearer(session(member))),
    ]
}

fn session(member: &Member) -> String {
    let mut values = member.browser.cookies.values();
    values.find(|value| value.starts_with("ps_se_")).unwrap().clone()
}

/// Tokens that were taken their force, one way each.
async fn ended(world: &World) -> Vec<(&'static str, Shown)> {
    let seller = world.seller().await;
    let token_of = async |seller: &Seller| {
        let application = world.application(seller, &["offers:read"]).await;
        let token = world.token(&application).await;
        (application, token)
    };
    let (application, revoked) = token_of(&seller).await;
    world.revoke(&application, &revoked).await.expect(200);
    let (application, suspended) = token_of(&seller).await;
    world
        .move_application(&application.client_id, "suspension")
        .await
        .expect(200);
    let (application, deleted) = token_of(&seller).await;
    let gone = format!("/applications/{}", application.client_id);
    world.office(Method::DELETE, &gone).send().await.expect(204);
    let personal = world.personal_token(&seller, &["offers:read"]).await;
    let gone = format!("/sellers/{}/personal-tokens/{}", seller.id, personal.id);
    world.office(Method::DELETE, &gone).send().await.expect(204);
    let closing = world.seller().await;
    let (_, of_closed) = token_of(&closing).await;
    let personal_of_closed = world.personal_token(&closing, &["offers:read"]).await.token;
    let closure = format!("/sellers/{}/closure", closing.id);
    world.office(Method::POST, &closure).send().await.expect(200);
    let member = &mut world.member().await;
    let partner = world.partner(&seller, &["offers:read"]).await;
    let disconnected = world.pair(&mut member.browser, &partner, "offers:read").await;
    world.revoke(&partner, &disconnected.refresh).await.expect(200);
    vec![
        ("a revoked token", Shown::Bearer(revoked)),
        ("a suspended application's token", Shown::Bearer(suspended)),
        ("a deleted application's token", Shown::Bearer(deleted)),
        ("a revoked personal token", Shown::Bearer(personal.token)),
        ("a closed seller's token", Shown::Bearer(of_closed)),
        (
            "a closed seller's personal token",
            Shown::Bearer(personal_of_closed),
        ),
        (
            "a token whose connection was ended",
            Shown::Bearer(disconnected.access),
        ),
    ]
}

impl Credentials {
    async fn issue(world: &World) -> Self {
        let clock = world.database.control_clock().await;
        let mut dead = ageing(world).await;
        clock.advance(LATER).await;
        dead.extend(ended(world).await);

        let mut member = world.member().await;
        let mut living = Vec::new();
        let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        for scope in Scope::ALL {
            let name = [scope.as_str()];
            let personal = world.personal_token(&member.seller, &name).await.token;
            let application = world.application(&member.seller, &name).await;
            let token = world.token(&application).await;
            living.push((format!("a personal token for {scope}"), personal, vec![*scope]));
            living.push((format!("a client's token for {scope}"), token, vec![*scope]));
        }
        let every = world.personal_token(&member.seller, &all).await.token;
        living.push((
            "a personal token for all".to_owned(),
            every.clone(),
            Scope::ALL.to_vec(),
        ));
        let partner = world
            .partner(&member.seller, &["offers:read", "orders:read"])
            .await;
        let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
        living.push((
            "a consented token".to_owned(),
            pair.access,
            vec![Scope::OffersRead],
        ));
        // What an application may no longer do its tokens may not either.
        let narrowed = world
            .application(&member.seller, &["offers:read", "offers:write"])
            .await;
        let token = world.token(&narrowed).await;
        let fewer = json!({"scopes": ["offers:read"]});
        world.adjust(&narrowed.client_id, &fewer).await.expect(200);
        living.push((
            "a narrowed application's token".to_owned(),
            token,
            vec![Scope::OffersRead],
        ));

        let asking = world.asking(&partner, "offers:read");
        let others = vec![
            ("a refresh token", pair.refresh),
            ("a code", world.code(&mut member.browser, &asking).await),
            ("a client secret", partner.client_secret.clone()),
            ("a client id", partner.client_id.clone()),
            ("a session", session(&member)),
            ("a password", blackbox::PASSWORD.to_owned()),
        ];
        let (operator, _) = operator_token(world, "alive").await;
        let (revoked_operator, id) = operator_token(world, "revoked").await;
        let environment = [("DATABASE_URL", world.database.url())];
        let revoke = ["admin", "operator-tokens", "revoke", &id];
        run(PROGRAM, &revoke, &environment).await.success();

        dead.push(("nothing", Shown::Nothing));
        for (what, header) in [
            ("an empty header", ""),
            ("a scheme alone", "Bearer"),
            ("garbage", "Bearer nonsense"),
            (
                "a token of the right form",
                "Bearer ps_at_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            (
                "a personal token of the right form",
                "Bearer ps_pt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            (
                "an operator's token of the right form",
                "Bearer ps_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            ("an unsigned JWT", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."),
        ] {
            dead.push((what, Shown::Header(header.to_owned())));
        }
        for (what, secret) in &others {
            dead.push((*what, Shown::Bearer(secret.clone())));
        }
        dead.push(("a session in its cookie", Shown::Cookie(session(&member))));
        Self {
            dead,
            living,
            operator,
            revoked_operator,
            others,
            member,
        }
    }
}

/// The ways of a good token that are no ways.
fn misplaced(token: &str) -> Vec<(&'static str, Shown)> {
    let own = |text: &str| text.to_owned();
    let mut ways: Vec<_> = ["Basic", "Token", "DPoP", "MAC", "Bearer:", "BearerX"]
        .map(|scheme| ("another scheme", Shown::Header(format!("{scheme} {token}"))))
        .into();
    ways.extend([
        ("no scheme", Shown::Header(own(token))),
        ("two headers", Shown::TwoHeaders(own(token))),
        ("two tokens", Shown::Header(format!("Bearer {token} {token}"))),
        ("a comma", Shown::Header(format!("Bearer {token},Bearer {token}"))),
        ("the query", Shown::Query(own(token))),
        ("a form", Shown::FormBody(own(token))),
        ("a JSON body", Shown::JsonBody(own(token))),
        ("a cookie", Shown::Cookie(own(token))),
        ("another header", Shown::OtherHeader("x-api-key", own(token))),
        (
            "the proxy's header",
            Shown::OtherHeader("proxy-authorization", format!("Bearer {token}")),
        ),
        (
            "the original header",
            Shown::OtherHeader("x-original-authorization", format!("Bearer {token}")),
        ),
    ]);
    ways
}

async fn matrix_world() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
            .set("SELLER_API__OAUTH__AUTHORIZE_LIMIT_PER_IP", 1_000_000)
            .set("SELLER_API__PANEL__SIGN_IN_LIMIT_PER_IP", 1_000_000)
    })
    .await
}

/// What a cell of the matrix has come to, in a word.
fn verdict(answer: &Answer) -> &'static str {
    let refused = answer.status >= 400 && !answer.bytes.is_empty();
    let is_json = answer.header("content-type") == Some("application/json");
    let code = (refused && is_json)
        .then(|| answer.errors())
        .and_then(|entries| entries.first().map(|(code, _)| code.clone()));
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    match (answer.status, code.as_deref()) {
        (401, Some("unauthorized")) if challenge.contains("error=\"invalid_token\"") => "unauthorized",
        (403, Some("insufficient_scope")) if challenge.contains("error=\"insufficient_scope\"") => {
            "insufficient scope"
        }
        (401 | 403 | 500.., _) => "something else",
        _ => "in",
    }
}

/// The methods by which a route is reached.
fn methods(method: &'static str) -> Vec<&'static str> {
    if method == "GET" {
        vec!["GET", "HEAD"]
    } else {
        vec![method]
    }
}

#[tokio::test]
async fn every_route_with_every_credential() {
    let world = matrix_world().await;
    let issued = Credentials::issue(&world).await;
    let mut faults = Vec::new();
    let mut cells = public(&world, &issued, &mut faults).await;
    cells += office(&world, &issued, &mut faults).await;
    cells += panel(&world, &issued, &mut faults).await;
    cells += endpoints(&world, &issued, &mut faults).await;
    assert!(faults.is_empty(), "{} of {cells}: {faults:#?}", faults.len());
    assert!(cells > 3_000, "{cells}");
}

/// `/v1`: no credential but a living token, in its one place, and with the scope of the route.
async fn public(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let (_, every, _) = issued
        .living
        .iter()
        .find(|(_, _, scopes)| scopes.len() > 1)
        .unwrap();
    let mut dead = issued.dead.clone();
    dead.extend(misplaced(every));
    dead.push(("an operator's token", Shown::Bearer(issued.operator.clone())));
    let mut cells = 0;
    for route in adapter_http::TABLE {
        let url = world.url(&path(route.template));
        for (what, shown) in &dead {
            let answer = shown.at(world, route.method.as_str(), &url).send().await;
            cells += 1;
            if verdict(&answer) != "unauthorized" {
                faults.push(format!(
                    "{} {} with {what}: {}",
                    route.method, route.template, answer.status
                ));
            }
        }
        for (what, token, scopes) in &issued.living {
            let expected = match route.scope {
                Some(scope) if !scopes.contains(&scope) => "insufficient scope",
                _ => "in",
            };
            let answer = Shown::Bearer(token.clone())
                .at(world, route.method.as_str(), &url)
                .send()
                .await;
            cells += 1;
            let named = route.scope.map_or("", Scope::as_str);
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            let names_it = expected == "in" || challenge.ends_with(&format!("scope=\"{named}\""));
            if verdict(&answer) != expected || !names_it {
                faults.push(format!(
                    "{} {} with {what}: {}",
                    route.method, route.template, answer.status
                ));
            }
        }
    }
    cells
}

/// The back office: an operator's token in its one place, and nothing else; what is open is open whatever is shown.
async fn office(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let mut dead = issued.dead.clone();
    dead.extend(misplaced(&issued.operator));
    dead.push((
        "a revoked operator's token",
        Shown::Bearer(issued.revoked_operator.clone()),
    ));
    for (_, token, scopes) in &issued.living {
        if scopes.len() > 1 || scopes.contains(&Scope::OffersRead) {
            dead.push(("a seller's token", Shown::Bearer(token.clone())));
        }
    }
    let mut cells = 0;
    for (method, template, guarded) in adapter_backoffice::calls() {
        let url = format!("{}{}", world.server.backoffice_url, path(template));
        for method in methods(method) {
            let mut look = |what: &str, answer: &Answer, expected: &str| {
                let got = match answer.status {
                    // HEAD says the same without a body.
                    401 if method == "HEAD" => "unauthorized",
                    _ => verdict(answer),
                };
                cells += 1;
                if got != expected {
                    faults.push(format!("{method} {template} with {what}: {}", answer.status));
                }
            };
            for (what, shown) in &dead {
                let answer = shown.at(world, method, &url).send().await;
                look(what, &answer, if guarded { "unauthorized" } else { "in" });
            }
            let answer = Shown::Bearer(issued.operator.clone())
                .at(world, method, &url)
                .send()
                .await;
            look("an operator's token", &answer, "in");
        }
    }
    cells
}

/// The panel: a living session in its cookie, and for a form the browser's own token; no token of the API does anything.
async fn panel(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let (_, every, _) = issued
        .living
        .iter()
        .find(|(_, _, scopes)| scopes.len() > 1)
        .unwrap();
    let mut strangers: Vec<_> = issued.dead.clone();
    strangers.retain(|(what, _)| *what != "a session in its cookie");
    for (what, secret) in &issued.others {
        if *what != "a session" {
            strangers.push((*what, Shown::Cookie(secret.clone())));
        }
    }
    strangers.extend([
        ("a token for everything", Shown::Bearer(every.clone())),
        (
            "a token for everything in the cookie",
            Shown::Cookie(every.clone()),
        ),
        ("an operator's token", Shown::Bearer(issued.operator.clone())),
        (
            "an operator's token in the cookie",
            Shown::Cookie(issued.operator.clone()),
        ),
        ("a session in the query", Shown::Query(session(&issued.member))),
        ("a session in a form", Shown::FormBody(session(&issued.member))),
    ]);
    let mut signed_out = world.browser_of(&issued.member.seller).await;
    let over: String = signed_out
        .cookies
        .values()
        .find(|v| v.starts_with("ps_se_"))
        .unwrap()
        .clone();
    let form = signed_out.open("/panel/sign-out").await.form("/panel/sign-out");
    signed_out.submit(&form).await;
    strangers.push(("a session that was ended", Shown::Cookie(over)));

    let mut cells = 0;
    for (method, template, access) in adapter_panel::pages() {
        // An embedded file has the name that it has.
        let target = path(template);
        let url = world.url(&target);
        for (what, shown) in &strangers {
            let answer = shown.at(world, method, &url).send().await;
            cells += 1;
            let to_sign_in = answer.status == 303
                && answer
                    .header("location")
                    .is_some_and(|to| to.starts_with("/panel/sign-in"));
            let fine = match (method, access) {
                // A form without its browser's token is nobody's, whoever may send it.
                ("POST", _) => matches!(answer.status, 400 | 403),
                (_, Access::SignedIn) => to_sign_in,
                (_, Access::Anybody) => !to_sign_in && answer.status < 500,
            };
            if !fine {
                faults.push(format!("{method} {template} with {what}: {}", answer.status));
            }
        }
        cells += own(world, issued, (method, &target, access), faults).await;
    }
    cells
}

/// The same page or form from a browser with a secret of its own: before signing in, and signed in without the form's token.
async fn own(
    world: &World,
    issued: &Credentials,
    (method, target, access): (&str, &str, Access),
    faults: &mut Vec<String>,
) -> usize {
    let mut fresh = world.visitor();
    let page = fresh.open("/panel/sign-in").await.expect(200);
    let csrf = page.form("/panel/sign-in").value("csrf").unwrap().to_owned();
    let form = |csrf: &str| Form {
        action: target.to_owned(),
        method: "post".to_owned(),
        fields: vec![("csrf".to_owned(), csrf.to_owned())],
        buttons: Vec::new(),
    };
    let mut signed_in = issued.member.browser.clone();
    let leads_to_sign_in = |answer: &Answer| {
        answer.status == 303
            && answer
                .header("location")
                .is_some_and(|to| to.starts_with("/panel/sign-in"))
    };
    if method == "GET" {
        let answer = signed_in.get(target).await;
        if leads_to_sign_in(&answer) || answer.status >= 500 {
            faults.push(format!("GET {target} signed in: {}", answer.status));
        }
        return 1;
    }
    let before = fresh.post(&form(&csrf)).await;
    if access == Access::SignedIn && !leads_to_sign_in(&before) {
        faults.push(format!("POST {target} before signing in: {}", before.status));
    }
    // Another browser's token, which is a good one there.
    let forged = signed_in.post(&form(&csrf)).await;
    if !matches!(forged.status, 400 | 403) {
        faults.push(format!("POST {target} forged: {}", forged.status));
    }
    2
}

/// `/oauth`: no bearer of anything is a client.
async fn endpoints(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let mut cells = 0;
    for (method, path) in adapter_http::endpoints() {
        let bearers = issued
            .living
            .iter()
            .map(|(what, token, _)| (what.as_str(), token));
        let bearers = bearers.chain([("an operator's token", &issued.operator)]);
        for (what, token) in bearers {
            for grant in ["client_credentials", "refresh_token"] {
                let request = Shown::Bearer(token.clone()).at(world, method, &world.url(path));
                let body = format!("grant_type={grant}&refresh_token={token}&token={token}");
                let request = if method == "POST" {
                    request.form(&body)
                } else {
                    request
                };
                let answer = request.send().await;
                cells += 1;
                let expected = if method == "POST" {
                    (401, "invalid_client")
                } else {
                    (400, "invalid_request")
                };
                let error = answer.json()["error"].as_str().unwrap_or_default().to_owned();
                if (answer.status, error.as_str()) != expected {
                    faults.push(format!("{method} {path} with {what}: {} {error}", answer.status));
                }
            }
        }
    }
    cells
}
