//! The panel's pages and forms.

use adapter_panel::Access;
use blackbox::{Form, World};
use testkit::Answer;

use super::credentials::{Credentials, session};
use super::path;
use super::shown::Shown;

/// The panel: a living session in its cookie, and for a form the browser's own token; no token of the API does anything.
pub(super) async fn pages(world: &World, issued: &Credentials, faults: &mut Vec<String>) -> usize {
    let every = issued.token_for_everything();
    let mut strangers: Vec<_> = issued.dead.clone();
    strangers.retain(|(what, _)| *what != "a session in its cookie");
    for (what, secret) in &issued.others {
        if *what != "a session" {
            strangers.push((*what, Shown::Cookie(secret.clone())));
        }
    }
    strangers.extend([
        ("a token for everything", Shown::Bearer(every.to_owned())),
        (
            "a token for everything in the cookie",
            Shown::Cookie(every.to_owned()),
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
            let fine = match (method, access) {
                // A form without its browser's token is nobody's, whoever may send it.
                ("POST", _) => matches!(answer.status, 400 | 403),
                (_, Access::SignedIn) => leads_to_sign_in(&answer),
                (_, Access::Anybody) => !leads_to_sign_in(&answer) && answer.status < 500,
            };
            if !fine {
                faults.push(format!("{method} {template} with {what}: {}", answer.status));
            }
        }
        cells += own(world, issued, (method, &target, access), faults).await;
    }
    cells
}

fn leads_to_sign_in(answer: &Answer) -> bool {
    let location = answer.header("location");
    answer.status == 303 && location.is_some_and(|to| to.starts_with("/panel/sign-in"))
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
