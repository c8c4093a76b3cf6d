//! Sellers' actions in the panel are in the audit log: actor, action, subject and source, but no secret.

use blackbox::{PASSWORD, World, text};
use serde_json::{Value, json};

use crate::{admin::audit, world};

/// A seller's audit entries, oldest first: action and subject.
async fn audit_entries(world: &World, seller: &str) -> Vec<(String, String)> {
    let mut entries = audit(world, &format!("--about {seller} --limit 100")).await;
    entries.reverse();
    entries.retain(|entry| entry["actor"]["kind"] == "seller");
    for entry in &entries {
        assert_eq!(entry["actor"], json!({"kind": "seller", "id": seller}));
        assert_eq!(entry["address"], "127.0.0.1");
    }
    let told = entries.iter();
    told.map(|entry| (text(entry, "action"), text(entry, "subject")))
        .collect()
}

#[tokio::test]
async fn sellers_actions_in_the_panel_are_in_the_audit_log() {
    let world = world().await;
    let mut member = world.member().await;
    let seller = member.seller.id.clone();
    let wrong = "wrong horse battery";
    let mut stranger = world.visitor();
    stranger.sign_in(&member.seller.email, wrong).await.expect(422);

    let registration = member.registration("Label Printer").await;
    let browser = &mut member.browser;
    let own = browser.sent(&registration).await.text_of("client_id");
    let of_it = format!("/panel/applications/{own}");
    let page = browser.page(&of_it).await;
    // What changes nothing leaves no entry.
    browser.sent(&page.form(&of_it)).await;
    browser
        .sent(&page.form(&of_it).with("description", "prints labels"))
        .await;
    let rotated = browser.sent(&page.form(&format!("{of_it}/secret"))).await;
    let secret = rotated.text_of("secret");

    world.adjust(&own, &json!({"rate_limit": 7})).await.expect(200);
    let mut entries = audit(&world, &format!("--about {own}")).await;
    entries.retain(|entry| entry["action"] == "application.changed");
    let [limited, described] = [0, 1].map(|n| &entries[n]["changes"]);
    assert_eq!(*limited, json!({"rate_limit": {"from": null, "to": 7}}));
    assert_eq!(
        *described,
        json!({"description": {"from": null, "to": "prints labels"}})
    );

    let form = browser.filled("/panel/tokens", "name", "night script").await;
    browser.sent(&form.with("scopes", "offers:read")).await;
    let mut forms = browser.page("/panel/tokens").await.forms().into_iter();
    let revoke = forms.find(|form| form.action.ends_with("/revoke")).unwrap();
    browser.sent(&revoke).await;
    let token = revoke.action.split('/').nth(3).unwrap();

    let partner = world.partner(&world.seller().await, &["offers:read"]).await;
    for decision in ["deny", "approve"] {
        let asking = world.asking(&partner, "offers:read");
        world.decided(browser, &asking, decision).await;
    }
    browser.disconnect(&partner.client_id).await;

    let deletion = browser.form(&format!("{of_it}/delete")).await;
    browser.sent(&deletion).await;
    let form = browser
        .filled("/panel/account", "current_password", PASSWORD)
        .await;
    browser
        .sent(&form.with("new_password", "staple of another kind"))
        .await;
    let page = browser.page("/panel/account").await;
    browser.sent(&page.form("/panel/sign-out-everywhere")).await;

    let told = blackbox::eventually("the note of the wrong password", async || {
        Some(audit_entries(&world, &seller).await)
            .filter(|told| told.iter().any(|(action, _)| action == "session.refused"))
    })
    .await;
    let mut expected = [
        ("session.opened", seller.as_str()),
        ("session.refused", &seller),
        ("application.registered", &own),
        ("application.changed", &own),
        ("application.secret_rotated", &own),
        ("personal_token.made", token),
        ("personal_token.revoked", token),
        ("consent.refused", &partner.client_id),
        ("consent.given", &partner.client_id),
        ("connection.ended", &partner.client_id),
        ("application.deleted", &own),
        ("password.changed", &seller),
        ("sessions.closed", &seller),
    ]
    .map(|(action, subject)| (action.to_owned(), subject.to_owned()));
    let mut found = told;
    // A wrong password is recorded concurrently with the answer, so that the time does not reveal whether the
    // account exists.
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let all = audit(&world, "--limit 100").await;
    let all = Value::from(all).to_string();
    for kept_out in [
        secret.as_str(),
        wrong,
        PASSWORD,
        "night script",
        &member.seller.email,
    ] {
        assert!(!all.contains(kept_out), "{kept_out}: {all}");
    }
}
