//! Every route with every kind of credential. Routes come from the routing tables and expectations from the
//! scopes that routes declare, so new routes are included automatically.

mod credentials;

use blackbox::{Form, World};
use oauth::Scope;
use testkit::Answer;

use self::credentials::{Credentials, Shown, misplaced};
use crate::world_with;

/// The cells that were checked, and their faults.
#[derive(Default)]
struct Matrix {
    cells: usize,
    faults: Vec<String>,
}

impl Matrix {
    fn look(&mut self, is_fine: bool, route: &str, what: &str, answer: &Answer) {
        self.cells += 1;
        if !is_fine {
            self.faults
                .push(format!("{route} with {what}: {}", answer.status));
        }
    }
}

#[tokio::test]
async fn every_route_with_every_credential() {
    let unlimited = "RATE_LIMIT__DEFAULT OAUTH__TOKEN_LIMIT_PER_IP OAUTH__TOKEN_LIMIT_PER_CLIENT \
        OAUTH__AUTHORIZE_LIMIT_PER_IP PANEL__SIGN_IN_LIMIT_PER_IP";
    let unlimited: Vec<_> = unlimited.split(' ').map(|limit| (limit, "1000000")).collect();
    let world = world_with(&unlimited).await;
    let issued = Credentials::issue(&world).await;
    let mut matrix = Matrix::default();
    api(&world, &issued, &mut matrix).await;
    back_office(&world, &issued, &mut matrix).await;
    panel(&world, &issued, &mut matrix).await;
    oauth_endpoints(&world, &issued, &mut matrix).await;
    let Matrix { cells, faults } = matrix;
    assert!(faults.is_empty(), "{} of {cells}: {faults:#?}", faults.len());
    assert!(cells > 3_000, "{cells}");
}

/// A path for a template: a valid id that does not exist replaces each parameter.
fn path(template: &str) -> String {
    let fill = |part| match part {
        "{client_id}" => "psa_01900000000070008000000000000001",
        part if part.starts_with('{') => "01900000-0000-7000-8000-000000000001",
        part => part,
    };
    template.split('/').map(fill).collect::<Vec<_>>().join("/")
}

/// The result of a cell in one word.
fn verdict(answer: &Answer) -> &'static str {
    let is_json = answer.header("content-type") == Some("application/json");
    let refused = answer.status >= 400 && !answer.bytes.is_empty() && is_json;
    let entries = if refused { answer.errors() } else { Vec::new() };
    let code = entries.first().map(|(code, _)| code.as_str());
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    match (answer.status, code) {
        (401, Some("unauthorized")) if challenge.contains("error=\"invalid_token\"") => "unauthorized",
        (403, Some("insufficient_scope")) if challenge.contains("error=\"insufficient_scope\"") => {
            "insufficient scope"
        }
        (401 | 403 | 500.., _) => "something else",
        _ => "in",
    }
}

/// `/v1` accepts only a valid token, in the right place, with the route's scope.
async fn api(world: &World, issued: &Credentials, matrix: &mut Matrix) {
    let mut dead = issued.dead.clone();
    dead.extend(misplaced(issued.token_for_everything()));
    dead.push(("an operator's token", Shown::Bearer(issued.operator.clone())));
    for route in adapter_http::TABLE {
        let url = world.url(&path(route.path));
        let name = format!("{} {}", route.method, route.path);
        for (what, shown) in &dead {
            let answer = shown.at(world, route.method.as_str(), &url).send().await;
            matrix.look(verdict(&answer) == "unauthorized", &name, what, &answer);
        }
        for (what, token, scopes) in &issued.living {
            let is_in = route.scope.is_empty() || route.scope.iter().any(|scope| scopes.contains(scope));
            let shown = Shown::Bearer(token.clone());
            let answer = shown.at(world, route.method.as_str(), &url).send().await;
            let named = format!(
                "scope=\"{}\"",
                route.scope.first().map_or("", |scope| scope.as_str())
            );
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            let is_fine = match verdict(&answer) {
                "in" => is_in,
                "insufficient scope" => !is_in && challenge.ends_with(&named),
                _ => false,
            };
            matrix.look(is_fine, &name, what, &answer);
        }
    }
}

/// `/oauth`: no bearer token authenticates a client.
async fn oauth_endpoints(world: &World, issued: &Credentials, matrix: &mut Matrix) {
    for (method, path) in adapter_http::endpoints() {
        let living = issued
            .living
            .iter()
            .map(|(what, token, _)| (what.as_str(), token));
        for (what, token) in living.chain([("an operator's token", &issued.operator)]) {
            for grant in ["client_credentials", "refresh_token"] {
                let mut request = Shown::Bearer(token.clone()).at(world, method, &world.url(path));
                let mut expected = (400, "invalid_request");
                if method == "POST" {
                    let body = format!("grant_type={grant}&refresh_token={token}&token={token}");
                    (request, expected) = (request.form(&body), (401, "invalid_client"));
                }
                let answer = request.send().await;
                let is_fine = answer.status == expected.0 && answer.json()["error"] == expected.1;
                matrix.look(is_fine, &format!("{method} {path}"), what, &answer);
            }
        }
    }
}

/// The back office accepts only an operator's token in the right place. Open routes are open with any
/// credential.
async fn back_office(world: &World, issued: &Credentials, matrix: &mut Matrix) {
    let mut dead = issued.dead.clone();
    dead.extend(misplaced(&issued.operator));
    let revoked = issued.revoked_operator.clone();
    dead.push(("a revoked operator's token", Shown::Bearer(revoked)));
    for (_, token, scopes) in &issued.living {
        if scopes.len() > 1 || scopes.contains(&Scope::OffersRead) {
            dead.push(("a seller's token", Shown::Bearer(token.clone())));
        }
    }
    let operator = [("an operator's token", Shown::Bearer(issued.operator.clone()))];
    for (method, template, guarded) in adapter_backoffice::calls() {
        let url = format!("{}{}", world.server.backoffice_url, path(template));
        let head = (method == "GET").then_some("HEAD");
        for method in [method].into_iter().chain(head) {
            let refused = if guarded { "unauthorized" } else { "in" };
            let all = dead.iter().map(|dead| (dead, refused));
            for ((what, shown), expected) in all.chain(operator.iter().map(|good| (good, "in"))) {
                let answer = shown.at(world, method, &url).send().await;
                let got = match answer.status {
                    // HEAD gets the same answer without a body.
                    401 if method == "HEAD" => "unauthorized",
                    _ => verdict(&answer),
                };
                matrix.look(got == expected, &format!("{method} {template}"), what, &answer);
            }
        }
    }
}

/// The panel requires a valid session cookie, and for forms the browser's form token. API tokens have no
/// effect.
async fn panel(world: &World, issued: &Credentials, matrix: &mut Matrix) {
    let every = issued.token_for_everything();
    let mut strangers = issued.dead.clone();
    strangers.retain(|(what, _)| *what != "a session in its cookie");
    for (what, secret) in &issued.others {
        if *what != "a session" {
            strangers.push((*what, Shown::Cookie(secret.clone())));
        }
    }
    for (what, token) in [
        ("a token for everything", every),
        ("an operator's token", &issued.operator),
    ] {
        strangers.push((what, Shown::Bearer(token.to_owned())));
        strangers.push((what, Shown::Cookie(token.to_owned())));
    }
    let session = issued.member.session();
    strangers.push(("a session in the query", Shown::Query(session.clone())));
    strangers.push(("a session in a form", Shown::FormBody(session)));
    let mut signed_out = issued.member.clone();
    signed_out.browser = world.browser_of(&issued.member.seller).await;
    strangers.push(("a session that was ended", Shown::Cookie(signed_out.session())));
    let form = signed_out.browser.form("/panel/sign-out").await;
    signed_out.browser.submit(&form).await;
    for (method, template, is_for_sellers) in adapter_panel::pages() {
        // An embedded file has a fixed name.
        let (target, name) = (path(template), format!("{method} {template}"));
        for (what, shown) in &strangers {
            let answer = shown.at(world, method, &world.url(&target)).send().await;
            let is_fine = match (method, is_for_sellers) {
                // A form without its browser's token is rejected from any sender.
                ("POST", _) => matches!(answer.status, 400 | 403),
                (_, true) => leads_to_sign_in(&answer),
                (_, false) => !leads_to_sign_in(&answer) && answer.status < 500,
            };
            matrix.look(is_fine, &name, what, &answer);
        }
        // From browsers with a secret: signed in, before sign-in, and with another browser's token.
        let mut signed_in = issued.member.browser.clone();
        if method == "GET" {
            let answer = signed_in.get(&target).await;
            let is_fine = !leads_to_sign_in(&answer) && answer.status < 500;
            matrix.look(is_fine, &name, "a session", &answer);
            continue;
        }
        let mut fresh = world.visitor();
        let mut form = fresh.form("/panel/sign-in").await;
        form.fields.retain(|(name, _)| name == "csrf");
        let form = Form {
            action: target,
            ..form
        };
        let before = fresh.post(&form).await;
        let is_fine = match (is_for_sellers, template) {
            (false, _) => true,
            // A screen belongs to a session.
            (_, "/panel/consent" | "/panel/consent/another-account") => before.status == 403,
            _ => leads_to_sign_in(&before),
        };
        matrix.look(is_fine, &name, "a browser without a session", &before);
        let forged = signed_in.post(&form).await;
        let is_fine = matches!(forged.status, 400 | 403);
        matrix.look(is_fine, &name, "another browser's form", &forged);
    }
}

fn leads_to_sign_in(answer: &Answer) -> bool {
    let location = answer.header("location");
    answer.status == 303 && location.is_some_and(|to| to.starts_with("/panel/sign-in"))
}
