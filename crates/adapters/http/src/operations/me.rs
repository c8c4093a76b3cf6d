//! `GET /v1/me`

use actix_web::http::Method;
use oauth::{Principal, Scope, ScopeSet};
use serde::{Serialize, Serializer};
use uuid::Uuid;
use web::Violations;
use web::query::{self, Selection};
use web::timestamps::Timestamp;

use super::view::view;
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Tells a client whose token it holds and what it may do with it.
pub(crate) struct ReadMe {
    fields: Selection,
}

impl Operation for ReadMe {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/me";
    const SCOPE: Option<Scope> = None;
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = MeView::FIELDS;

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| Self {
            fields: query.fields(Self::FIELDS),
        })
    }
}

impl Read for ReadMe {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        Reply::ok(
            &MeView::new(&context.principal, self.fields),
            MeView::USUAL_LENGTH,
        )
    }
}

view! {
    /// Contract: Me. The scopes are the effective ones (D73).
    MeView of me: Principal, of 384 bytes {
        "seller" => SellerView { id: me.seller.uuid(), seller_no: me.seller_no },
        "app" => AppView { client_id: me.client_id.to_string(), name: &me.app_name },
        "scopes" => Names(me.scopes),
        "token" => TokenView { kind: me.kind.as_str(), expires_at: me.expires_at.map(Timestamp::new) },
    }
}

#[derive(Serialize)]
struct SellerView {
    id: Uuid,
    seller_no: i32,
}

#[derive(Serialize)]
struct AppView<'a> {
    client_id: String,
    name: &'a str,
}

#[derive(Serialize)]
struct TokenView {
    kind: &'static str,
    expires_at: Option<Timestamp>,
}

/// Scopes as an array of their names.
struct Names(ScopeSet);

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Scope::as_str))
    }
}
