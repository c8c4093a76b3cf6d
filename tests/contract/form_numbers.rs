//! The one-time numbers of the panel's forms: a number has an effect once. A repeat gets the first result, or
//! an error that asks the seller to open the form again.

use blackbox::{Expect, Form, Member, World};

use crate::world_of_consent;

const NEW: &str = "/panel/applications/new";

/// Asserts the answer to a number that other content has used: nothing was done, and a link leads to a new
/// form.
async fn is_used(member: &mut Member, form: &Form) {
    let answer = member.browser.post(form).await.expect(409);
    assert_eq!(answer.header("location"), None);
    let html = String::from_utf8_lossy(&answer.bytes);
    assert!(html.contains("This form has been used already"), "{html}");
    assert!(html.contains(&format!("href=\"{NEW}\"")), "{html}");
    assert!(!html.contains("pss_"), "{html}");
}

async fn names(world: &World, member: &Member) -> i64 {
    let of_mine = "select count(*) from applications where owner_id::text = $1 and not built_in";
    world.count(of_mine, &[&member.seller.id]).await
}

#[tokio::test]
async fn a_registration_form_acts_once_and_can_be_corrected() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let form = member.registration("Label Printer").await;
    let first = member.browser.post(&form).await.expect(303);
    let other = form.clone().with("name", "Parcel Printer");
    is_used(&mut member, &other).await;
    is_used(&mut member, &form.clone().and("scopes", "orders:read")).await;
    assert_eq!(names(&world, &member).await, 1);
    // Neither rejection has used up the first form's pending result; submitting that form again leads to it.
    let again = member.browser.post(&form).await.expect(303);
    assert_eq!(again.must("location"), first.must("location"));
    let shown = member.browser.page(first.must("location")).await;
    assert!(shown.text_of("secret").starts_with("pss_"), "{}", shown.html);
    let secret_again = member.browser.open(first.must("location")).await;
    secret_again.expect(410).hides("pss_");
    // Also after the result was viewed.
    is_used(&mut member, &other).await;
    member.browser.post(&form).await.expect(303);
    assert_eq!(names(&world, &member).await, 1);
    // A submission with invalid fields does not use up its number.
    for (name, status) in [("ab", 422), ("Label Printer", 409), ("Parcel Printer", 303)] {
        let form = member.registration(name).await;
        let answer = member.browser.post(&form).await.expect(status);
        let html = String::from_utf8_lossy(&answer.bytes);
        assert_eq!(html.contains("id=\"name-error\""), status != 303, "{html}");
    }
    assert_eq!(names(&world, &member).await, 2);
}
