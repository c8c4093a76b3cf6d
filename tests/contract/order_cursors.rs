//! Cursors of `GET /v1/orders`: bound to resource, seller and filters.

use blackbox::Expect;

use crate::order_lists::{page, prepared};

#[tokio::test]
async fn a_cursor_belongs_to_resource_seller_and_filters() {
    let (world, trader, _) = prepared(3).await;
    let cursor = async |query: &str| {
        page(&world, &trader.token, &format!("limit=1{query}")).await["next"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let plain = cursor("").await;
    page(
        &world,
        &trader.token,
        &format!("limit=2&fields=status&after={plain}"),
    )
    .await;
    let stranger = world.trader().await;
    world
        .get(&stranger.token, &format!("/v1/orders?after={plain}"))
        .await
        .invalid(&["after"]);
    world
        .get(&trader.token, &format!("/v1/offers?after={plain}"))
        .await
        .invalid(&["after"]);
    let filters = [
        "&status=pending",
        "&placed_after=2000-01-01T00:00:00Z",
        "&updated_after=2000-01-01T00:00:00Z",
    ];
    for filter in filters {
        let own = cursor(filter).await;
        page(&world, &trader.token, &format!("after={own}{filter}")).await;
        for other in filters.into_iter().chain([""]).filter(|other| *other != filter) {
            let answer = world
                .get(&trader.token, &format!("/v1/orders?after={own}{other}"))
                .await;
            answer.invalid(&["after"]);
        }
        world
            .get(&trader.token, &format!("/v1/orders?after={plain}{filter}"))
            .await
            .invalid(&["after"]);
    }
    for position in [0, plain.len() / 2, plain.len() - 1] {
        let mut bytes = plain.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        let bad = String::from_utf8(bytes).unwrap();
        world
            .get(&trader.token, &format!("/v1/orders?after={bad}"))
            .await
            .invalid(&["after"]);
    }
}
