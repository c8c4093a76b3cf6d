//! The public listener: `/v1`, and the endpoints of `/oauth`.

use blackbox::World;
use oauth::Scope;

use super::credentials::Credentials;
use super::shown::{Shown, misplaced};
use super::{path, verdict};

/// `/v1`: no credential but a living token, in its one place, and with the scope of the route.
pub(super) async fn routes(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let mut dead = issued.dead.clone();
    dead.extend(misplaced(issued.token_for_everything()));
    dead.push(("an operator's token", Shown::Bearer(issued.operator.clone())));
    let mut cells = 0;
    for route in adapter_http::TABLE {
        let url = world.url(&path(route.path));
        for (what, shown) in &dead {
            let answer = shown.at(world, route.method.as_str(), &url).send().await;
            cells += 1;
            if verdict(&answer) != "unauthorized" {
                faults.push(format!(
                    "{} {} with {what}: {}",
                    route.method, route.path, answer.status
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
                    route.method, route.path, answer.status
                ));
            }
        }
    }
    cells
}

/// `/oauth`: no bearer of anything is a client.
pub(super) async fn endpoints(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
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
