//! `/panel/connections`: the applications that a seller has granted access.

use askama::Template;
use futures_util::TryFutureExt as _;
use oauth::{ClientId, ConnectedApplication};
use usecases::consent;

use super::{ROWS, confirm, done, next_page, ok};
use crate::frame::Frame;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

const LIST: &str = "/panel/connections";

#[derive(Template)]
#[template(path = "connections.html")]
struct ConnectionsPage {
    frame: Frame,
    connections: Vec<ConnectedApplication>,
    /// The address of the next page; empty for none.
    next: String,
}

pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let grants = &request.panel.grants;
    let after = request.query.get("after").map(str::to_owned);
    let mut connections = grants.connections(request.seller().id, after, ROWS + 1).await?;
    ok(&ConnectionsPage {
        frame: request.frame(request.texts().frame.connections),
        next: next_page(LIST, "after", &mut connections, |last| last.name.clone()),
        connections,
    })
}

/// GET: asks for confirmation before disconnecting.
pub(crate) async fn disconnection(request: SignedInRequest) -> PageResult {
    let (seller, client_id) = (request.seller().id, request.id::<ClientId>()?);
    let connection = request.panel.grants.connection(seller, client_id).await?;
    let t = &request.texts().connections;
    let title = (t.confirm_title)(&connection.ok_or(PageError::NotFound)?.name);
    confirm(&request, title, t.confirm_text, t.disconnect, LIST)
}

pub(crate) async fn disconnect(request: SignedInRequest) -> PageResult {
    let (form, input) = (request.form()?, (request.acting(), request.id::<ClientId>()?));
    let ended = request.change_once(form, LIST, input, |tx, _, (by, id)| {
        Box::pin(consent::disconnect(tx, tx, *by, *id).map_ok(|()| None))
    });
    ended.await?.map_err(|_| PageError::NotFound)?;
    done("disconnected", LIST)
}
