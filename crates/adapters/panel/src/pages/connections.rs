//! `/panel/connections`: the applications that a seller has let in.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use oauth::{ClientId, ConnectedApplication};
use usecases::connections;

use super::scope_list::{Granted, granted};
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;
use crate::when::When;

#[derive(Template)]
#[template(path = "connections.html")]
struct Page {
    frame: Frame,
    connections: Vec<Listed>,
}

struct Listed {
    client_id: ClientId,
    name: String,
    owner: String,
    documentation_url: Option<String>,
    scopes: Vec<Granted>,
    since: When,
    used: Option<When>,
}

/// GET
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let found = member.visit.panel.grants.connections(member.seller().id).await?;
    let listed = |connection: ConnectedApplication| Listed {
        client_id: connection.client_id,
        name: connection.name,
        owner: connection.owner_name,
        documentation_url: connection.documentation_url,
        scopes: granted(connection.scopes, t),
        since: When(connection.connected_at),
        used: connection.used_at.map(When),
    };
    let template = Page {
        frame: Frame::of_member(&member, t.connections.title).noting(&member.visit),
        connections: found.into_iter().map(listed).collect(),
    };
    crate::reply::page(StatusCode::OK, &template)
}

/// POST
pub(crate) async fn disconnect(member: Member, _fields: Fields) -> Result<HttpResponse, Refusal> {
    let id: ClientId = member.visit.parameter.parse().map_err(|_| Refusal::NotFound)?;
    let ended = change(
        &member.visit.panel,
        (member.acting(), id),
        |transaction, _, (by, id)| Box::pin(connections::disconnect(transaction, transaction, *by, *id)),
    );
    ended.await?.map_err(|_| Refusal::NotFound)?;
    see_other(&Done::Disconnected.on("/panel/connections"))
}
