//! `GET /v1/me`

use actix_web::http::{Method, StatusCode};
use oauth::{Principal, Scope, ScopeSet, TokenKind};
use serde::{Serialize, Serializer};
use uuid::Uuid;
use web::Violations;
use web::query::{self, Selection};
use web::schema::{Node, array, date_time, integer, string, uuid};
use web::timestamps::Timestamp;

use super::view::{part, view};
use crate::declared::{Declared, Parameter, Success, Tag};
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
    const DECLARED: &'static Declared = &Declared {
        id: "getMe",
        tag: Tag::Account,
        summary: "Read whose token it is",
        description: "Seller, application, scopes and expiry: the authority on what the token may do. Needs no scope.",
        resource: None,
        parameters: &[Parameter::FIELDS],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "Seller, application, scopes and token.",
            schema: MeView::schema,
            example,
        },
        deprecated: None,
        refusals: &[],
    };

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
    MeView of me: Principal, of 384 bytes, named "Me", "Whose token it is and what it may do." {
        "seller": SellerView::schema() => SellerView { id: me.seller.uuid(), seller_no: Some(me.seller_no) },
        "app": AppView::schema() => AppView { client_id: me.client_id.to_string(), name: &me.app_name },
        "scopes": array(scope()).said("What the token and its application both hold.") => Names(me.scopes),
        "token": TokenView::schema() => TokenView { kind: me.kind.as_str(), expires_at: me.expires_at.map(Timestamp::new) },
    }
}

part! {
    /// Contract: Me, `seller`.
    SellerView, named "Seller", "Whose account it is." {
        id: Uuid = uuid(),
        seller_no: Option<i32> = integer(0, i32::MAX.into()).or_null().said("The number people use."),
    }
}

part! {
    /// Contract: Me, `app`.
    AppView<'a>, named "Application", "Which application the token was issued to." {
        client_id: String = string(),
        name: &'a str = string(),
    }
}

part! {
    /// Contract: Me, `token`.
    TokenView, named "Token", "The token of this request." {
        kind: &'static str = string().one_of([TokenKind::Access, TokenKind::Personal].map(TokenKind::as_str)).named("TokenKind"),
        expires_at: Option<Timestamp> = date_time().or_null().said("`null` for a personal token that does not expire."),
    }
}

/// Contract: Scopes.
pub(crate) fn scope() -> Node {
    string()
        .one_of(Scope::ALL.iter().map(|scope| scope.as_str()))
        .said("Further scopes may be added.")
        .extensible()
        .named("Scope")
}

/// Scopes as an array of their names.
struct Names(ScopeSet);

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Scope::as_str))
    }
}

fn example() -> Node {
    Node::parse(
        r#"{
            "seller": {"id": "01936a00-1c2d-7e3f-8a4b-5c6d7e8f9a0b", "seller_no": 1},
            "app": {"client_id": "psa_01936a0c5d3e7f1a9b8c7d6e5f4a3b2c", "name": "Kettle Sync"},
            "scopes": ["offers:read", "offers:write"],
            "token": {"kind": "access", "expires_at": "2026-11-20T20:41:00.000000Z"}
        }"#,
    )
}
