//! The first page: a seller's credentials, and the calls to begin with.

use actix_web::HttpResponse;
use askama::Template;
use reqwest::Method;
use serde_json::json;
use url::{Position, Url};
use web::form::Form;

use super::{Frame, Shown, html, see_other};
use crate::calls::{Body, By, Call, text};
use crate::{SandboxPage, SandboxSeller};

#[derive(Template)]
#[template(path = "first_steps.html")]
struct FirstStepsPage<'a> {
    frame: Frame,
    sellers: &'a [SandboxSeller],
    buttons: Vec<String>,
}

/// `GET /sandbox`.
pub(crate) fn first_steps(page: &SandboxPage) -> HttpResponse {
    let sellers = &page.settings.sellers;
    let examples = sellers
        .first()
        .and_then(|first| Some((first.offer.clone()?, first.order.clone()?)));
    let (offer, order) = examples.unwrap_or_default();
    let parcel = Body::Json(json!({ "carrier": "inpost", "tracking_number": "LATER0001" }));
    let first = |method, path: &str, body| Call::new(By::Seller(0), method, path, body);
    let read = |path: &str| first(Method::GET, path, Body::None);
    let calls = [
        ("Who am I?", read("/v1/me")),
        ("My offers, newest first", read("/v1/offers?limit=5")),
        ("One offer", read(&format!("/v1/offers/{offer}"))),
        (
            "Orders that are paid and wait to be shipped",
            read("/v1/orders?status=processing&limit=5"),
        ),
        (
            "Ship one of them",
            first(Method::POST, &format!("/v1/orders/{order}/shipments"), parcel),
        ),
    ];
    let shown = FirstStepsPage {
        frame: page.frame("First steps"),
        sellers,
        buttons: calls.map(|(label, call)| page.button(label, call, &[])).into(),
    };
    html(&shown)
}

/// `POST /sandbox/sign-in`: into the panel as a seller, by a link that the marketplace requests.
pub(crate) async fn sign_in(page: &SandboxPage, form: &Form) -> Shown {
    let (_, Some(seller)) = page.seller(form) else {
        return Err("The sandbox has no sellers.".to_owned());
    };
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let call = Call::new(By::Office, Method::POST, path, Body::None);
    let link = page.make(&call).await?.accepted()?.json();
    let url = Url::parse(text(&link, "url")).map_err(|error| format!("The link is no URL: {error}."))?;
    // The path alone: the browser stays at the name by which it came.
    Ok(see_other(&url[Position::BeforePath..]))
}
