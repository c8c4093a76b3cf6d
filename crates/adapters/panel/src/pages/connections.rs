//! `/panel/connections`: the applications that a seller has granted access.

use actix_web::HttpResponse;
use askama::Template;
use oauth::{ClientId, ConnectedApplication};
use usecases::consent;

use super::{done, ok};
use crate::frame::Frame;
use crate::page_request::SignedInRequest;
use crate::refusal::Refusal;

#[derive(Template)]
#[template(path = "connections.html")]
struct Page {
    frame: Frame,
    connections: Vec<ConnectedApplication>,
}

pub(crate) async fn page(request: SignedInRequest) -> Result<HttpResponse, Refusal> {
    ok(&Page {
        frame: request.frame(request.texts().connections.title),
        connections: request.panel.grants.connections(request.seller().id).await?,
    })
}

pub(crate) async fn disconnect(request: SignedInRequest) -> Result<HttpResponse, Refusal> {
    let input = (request.acting(), request.id::<ClientId>()?);
    let ended = request.change(input, |tx, _, (by, id)| {
        Box::pin(consent::disconnect(tx, tx, *by, *id))
    });
    ended.await?.map_err(|_| Refusal::NotFound)?;
    done("disconnected", "/panel/connections")
}
