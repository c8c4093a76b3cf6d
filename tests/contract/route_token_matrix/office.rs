//! The marketplace's listener.

use blackbox::World;
use oauth::Scope;
use testkit::Answer;

use super::credentials::Credentials;
use super::shown::{Shown, misplaced};
use super::{path, verdict};

/// The back office: an operator's token in its one place, and nothing else; what is open is open whatever is shown.
pub(super) async fn calls(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
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

/// The methods by which a route is reached.
fn methods(method: &'static str) -> Vec<&'static str> {
    if method == "GET" {
        vec!["GET", "HEAD"]
    } else {
        vec![method]
    }
}
