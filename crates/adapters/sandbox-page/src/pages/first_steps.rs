//! The first page: a seller's credentials, and the calls to begin with.

use askama::Template;
use offers::OfferStatus;
use reqwest::Method;
use serde_json::Value;
use url::{Position, Url};

use super::{Frame, Shown, html, see_other, trade};
use crate::calls::{By, Call, text};
use crate::{Chosen, SandboxPage, SandboxSeller, shippable};

#[derive(Template)]
#[template(path = "first_steps.html")]
struct FirstStepsPage<'a> {
    frame: Frame<'a>,
    buttons: Vec<String>,
    /// None while no order waits to be shipped.
    ship: Option<String>,
}

impl FirstStepsPage<'_> {
    fn curl(&self, seller: &SandboxSeller) -> String {
        link(seller).curl(self.frame.page)
    }
}

/// `GET /sandbox`.
pub(crate) async fn first_steps(page: &SandboxPage, (n, seller): Chosen<'_>) -> Shown {
    let offers = trade::newest(page, seller, Some(OfferStatus::Published), 1).await?;
    let offer = offers.first().map(|offer| offer.id.to_string());
    let offer = offer.unwrap_or_default();
    let first = |method, path: &str, body| Call::new(By::Seller(n), method, path, body);
    let read = |path: &str| first(Method::GET, path, Value::Null);
    let calls = [
        ("Who am I?", read("/v1/me")),
        ("My offers, newest first", read("/v1/offers?limit=5")),
        ("One offer", read(&format!("/v1/offers/{offer}"))),
        (
            "Orders that are paid and wait to be shipped",
            read("/v1/orders?status=processing&limit=5"),
        ),
    ];
    let order = shippable(&*page.settings.orders, seller.id.into()).await?;
    let ship = order.map(|order| {
        let path = format!("/v1/orders/{order}/shipments");
        let call = first(Method::POST, &path, trade::new_parcel(page));
        page.button("Ship one of them", call, &[])
    });
    Ok(html(&FirstStepsPage {
        frame: page.frame("First steps"),
        buttons: calls.map(|(label, call)| page.button(label, call, &[])).into(),
        ship,
    }))
}

/// The marketplace requests a link into the panel.
fn link(seller: &SandboxSeller) -> Call {
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    Call::new(By::Office, Method::POST, path, Value::Null)
}

/// `POST /sandbox/sign-in`: into the panel as a seller.
pub(crate) async fn sign_in(page: &SandboxPage, (_, seller): Chosen<'_>) -> Shown {
    let link = page.make(&link(seller)).await?.accepted()?.json();
    let url = Url::parse(text(&link, "url")).map_err(|error| format!("The link is no URL: {error}."))?;
    // The path alone: the browser stays at the name by which it came.
    Ok(see_other(&url[Position::BeforePath..]))
}
