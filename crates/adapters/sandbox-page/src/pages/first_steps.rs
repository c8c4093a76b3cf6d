//! The first page: a seller's credentials, and the calls to begin with.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use askama::Template;
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;
use web::form::Form;

use super::{Frame, html};
use crate::calls::{Body, Call};
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
    let sellers = &page.shared.settings.sellers;
    let examples = sellers
        .first()
        .and_then(|first| Some((first.offer.clone()?, first.order.clone()?)));
    let (offer, order) = examples.unwrap_or_default();
    let parcel = Body::Json(json!({ "carrier": "inpost", "tracking_number": "LATER0001" }));
    let read = |path: &str| Call::by_seller(0, Method::GET, path, Body::None);
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
            Call::by_seller(0, Method::POST, format!("/v1/orders/{order}/shipments"), parcel),
        ),
    ];
    let shown = FirstStepsPage {
        frame: page.frame("First steps", "/sandbox"),
        sellers,
        buttons: calls
            .iter()
            .map(|(label, call)| page.button(label, call, &[]))
            .collect(),
    };
    html(StatusCode::OK, &shown)
}

/// `POST /sandbox/sign-in`: into the panel as a seller, by a link that the marketplace requests.
pub(crate) async fn sign_in(page: &SandboxPage, form: &Form) -> HttpResponse {
    let (_, Some(seller)) = page.seller(form) else {
        return HttpResponse::NotFound().body("The sandbox has no sellers.\n");
    };
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let call = Call::by_office(Method::POST, path, Body::None);
    let answer = match page.shared.calls.make(&page.shared.settings, &call).await {
        Ok(answer) => answer,
        Err(sentence) => return HttpResponse::BadGateway().body(sentence),
    };
    let url = answer
        .json()
        .get("url")
        .and_then(Value::as_str)
        .and_then(|url| Url::parse(url).ok());
    match url {
        // The path alone: the browser stays at the name by which it came.
        Some(url) => {
            let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
            HttpResponse::SeeOther()
                .insert_header((LOCATION, format!("{}{query}", url.path())))
                .finish()
        }
        None => HttpResponse::BadGateway().body(answer.pretty()),
    }
}
