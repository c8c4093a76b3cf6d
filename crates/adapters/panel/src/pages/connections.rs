//! `/panel/connections`: the applications that a seller has granted access.

use actix_web::HttpResponse;
use askama::Template;
use oauth::{ClientId, ConnectedApplication};
use usecases::consent;

use super::{done, ok};
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "connections.html")]
struct Page {
    frame: Frame,
    connections: Vec<ConnectedApplication>,
}

pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    ok(&Page {
        frame: member.frame(member.texts().connections.title),
        connections: member.panel.grants.connections(member.seller().id).await?,
    })
}

pub(crate) async fn disconnect(member: Member) -> Result<HttpResponse, Refusal> {
    let input = (member.acting(), member.id::<ClientId>()?);
    let ended = member.change(input, |tx, _, (by, id)| {
        Box::pin(consent::disconnect(tx, tx, *by, *id))
    });
    ended.await?.map_err(|_| Refusal::NotFound)?;
    done("disconnected", "/panel/connections")
}
