//! `GET /v1/me`

use oauth::{Principal, Scope, TokenKind};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Read};
use web::reply::Reply;
use web::schema::{Node, array, date_time, integer, string, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Error, Violations};

use crate::Public;
use crate::documents::{docs, example};

/// Returns the seller, application and scopes of a token.
pub(crate) struct ReadMe;

impl Read<Public> for ReadMe {
    const SCOPE: &'static [Scope] = &[];
    const FIELDS: &'static [&'static str] = MeView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(MeView::schema, example!("me"))),
        ..docs!("getMe", "Account")
    });

    fn decode(_: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(Some(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        Reply::ok(&MeView::new(&call.caller, call.fields))
    }
}

web::view! {
    /// Contract: Me. The scopes are the effective ones (D73).
    MeView<'a> of me: &'a Principal, named "Me", "The token's seller, application and scopes." {
        "seller": SellerView::schema() => SellerView::whole(me),
        "seller_name": string().or_null().describe("The seller's name.") => me.seller_name,
        "app": AppView::schema() => AppView::whole(me),
        "scopes": array(scope()).describe("The scopes that both the token and its application have.")
            => me.scopes.names(),
        "token": TokenView::schema() => TokenView::whole(me),
    }
}

web::view! {
    SellerView<'a> of me: &'a Principal, named "Seller", "The seller of the account." {
        "id": uuid() => me.seller.uuid(),
        "seller_no": integer(0, i32::MAX.into()).or_null().describe("The seller's public number.") => me.seller_no,
    }
}

web::view! {
    AppView<'a> of me: &'a Principal, named "Application", "The application that the token was issued to." {
        "client_id": string() => me.client_id.to_string(),
        "name": string().describe("`Personal tokens`, a reserved name, for a personal token.")
            => me.app_name,
    }
}

web::view! {
    TokenView<'a> of me: &'a Principal, named "Token", "The token of this request." {
        "kind": string().one_of(TokenKind::ALL.map(TokenKind::as_str)).named("TokenKind") => me.kind.as_str(),
        "expires_at": date_time().or_null().describe("`null` for a personal token that does not expire.")
            => me.expires_at.map(Timestamp::new),
    }
}

/// Contract: Scopes.
pub(crate) fn scope() -> Node {
    string()
        .one_of(Scope::ALL.map(Scope::as_str))
        .describe("Further scopes may be added.")
        .extensible()
        .named("Scope")
}
