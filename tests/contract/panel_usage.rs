//! The panel's statistics of an application's requests.

use blackbox::{Page, eventually};

use crate::with_partner;

/// The rows of the table of requests: status and number.
fn rows(page: &Page) -> String {
    let rows = page.html.split("<tr><td><code>").skip(1);
    let cells = rows.filter_map(|row| {
        let (status, rest) = row.split_once("</code>")?;
        let (_, rest) = rest.split_once("<td class=\"number\">")?;
        Some(format!("{status}:{}", rest.split_once('<')?.0))
    });
    cells.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_days_calls_are_told_by_status_with_how_much_of_the_limit_is_used() {
    let (world, mut customer, other) = with_partner(&["offers:read"]).await;
    let mut member = world.member().await;
    let own = world.partner(&member.seller, &["offers:read"]).await;
    let path = format!("/panel/applications/{}", own.client_id);
    let page = member.browser.page(&path).await;
    assert_eq!(rows(&page), "", "{}", page.html);
    // With the application's own token and with that of a seller who has consented.
    let token = world.token(&own).await;
    let pair = world.pair(&mut customer.browser, &own, "offers:read").await;
    for (token, path, status) in [
        (&token, "/v1/me", 200),
        (&pair.access, "/v1/offers", 200),
        (&pair.access, "/v1/orders", 403),
        (&token, "/v1/offers/x", 404),
        (&token, "/v1/offers?after=x", 400),
        (&token, "/v1/me", 200),
    ] {
        world.get(token, path).await.expect(status);
    }
    // Requests that are not the application's are not counted.
    world.get("ps_at_x", "/v1/me").await.expect(401);
    world.get(&world.token(&other).await, "/v1/me").await.expect(200);
    // Counts are written every few seconds, so some may appear before others.
    let page = eventually("the counts", async || {
        let page = member.browser.open(&path).await;
        (rows(&page) == "200:3 400:1 403:1 404:1").then_some(page)
    })
    .await;
    page.shows("max=\"600\"");
}
