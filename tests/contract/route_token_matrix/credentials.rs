//! A credential of every kind: valid, invalid, or a secret that is not a token; and the right and wrong ways
//! to send it.

use blackbox::{Application, Member, Seller, World, run, text};
use chrono::TimeDelta;
use oauth::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Request, TestDatabase};

use crate::PROGRAM;

/// A way to send a credential.
#[derive(Debug, Clone)]
pub(super) enum Shown {
    Nothing,
    Bearer(String),
    TwoHeaders(String),
    Query(String),
    FormBody(String),
    JsonBody(String),
    Cookie(String),
    Header(&'static str, String),
}

impl Shown {
    /// The request for a path with the credential in this place.
    pub(super) fn at(&self, world: &World, method: &str, url: &str) -> Request {
        let method: Method = method.parse().unwrap();
        let asking = |url: &str| world.client.request(method.clone(), url);
        match self {
            Self::Nothing => asking(url),
            Self::Bearer(token) => asking(url).bearer(token),
            Self::TwoHeaders(token) => asking(url).bearer(token).bearer(token),
            Self::Query(token) => asking(&format!("{url}?access_token={token}&token={token}")),
            Self::FormBody(token) => asking(url).form(&format!("access_token={token}&token={token}")),
            Self::JsonBody(token) => asking(url).json(&json!({"access_token": token})),
            Self::Cookie(token) => {
                let cookies =
                    format!("seller_panel={token}; access_token={token}; authorization=Bearer {token}");
                asking(url).header("cookie", &cookies)
            }
            Self::Header(name, value) => asking(url).header(name, value),
        }
    }
}

fn authorization(value: impl Into<String>) -> Shown {
    Shown::Header("authorization", value.into())
}

/// A valid token in wrong places.
pub(super) fn misplaced(token: &str) -> Vec<(&'static str, Shown)> {
    let own = || token.to_owned();
    let bearer = || format!("Bearer {token}");
    let mut ways = vec![
        ("no scheme", authorization(token)),
        ("two headers", Shown::TwoHeaders(own())),
        ("two tokens", authorization(format!("Bearer {token} {token}"))),
        ("a comma", authorization(format!("Bearer {token},Bearer {token}"))),
        ("the query", Shown::Query(own())),
        ("a form", Shown::FormBody(own())),
        ("a JSON body", Shown::JsonBody(own())),
        ("a cookie", Shown::Cookie(own())),
        ("another header", Shown::Header("x-api-key", own())),
        ("a proxy's header", Shown::Header("proxy-authorization", bearer())),
        (
            "another header",
            Shown::Header("x-original-authorization", bearer()),
        ),
    ];
    for scheme in ["Basic", "Token", "DPoP", "MAC", "Bearer:", "BearerX"] {
        ways.push(("another scheme", authorization(format!("{scheme} {token}"))));
    }
    ways
}

/// Authorization headers without a valid token: among them one of each kind's form, and an unsigned JWT.
const MALFORMED: [&str; 7] = [
    "",
    "Bearer",
    "Bearer nonsense",
    "Bearer ps_at_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer ps_pt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer ps_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
];

/// Everything that grants access somewhere, or did.
pub(super) struct Credentials {
    /// Credentials that grant access nowhere, or not any more.
    pub(super) dead: Vec<(&'static str, Shown)>,
    /// A valid token of each kind: its description, the token, and its scopes.
    pub(super) living: Vec<(String, String, Vec<Scope>)>,
    /// A valid operator's token, and a revoked one.
    pub(super) operator: String,
    pub(super) revoked_operator: String,
    /// Secrets that are not tokens.
    pub(super) others: Vec<(&'static str, String)>,
    pub(super) member: Member,
}

/// Does something with operators' tokens by command, and returns the result.
async fn operator_tokens(world: &World, words: [&str; 2]) -> Value {
    let environment = [
        ("DATABASE_URL", world.database.url()),
        TestDatabase::layout_variable(),
    ];
    let arguments = ["admin", "operator-tokens", words[0], words[1], "--json"];
    let done = run(PROGRAM, &arguments, &environment).await.success();
    serde_json::from_str(&done.stdout).unwrap()
}

async fn token_of(world: &World, seller: &Seller, scopes: &[&str]) -> (Application, String) {
    let app = world.application(seller, scopes).await;
    let token = world.token(&app).await;
    (app, token)
}

/// Tokens and a session that are valid now and will expire.
async fn ageing(world: &World) -> Vec<(&'static str, Shown)> {
    let mut member = world.member().await;
    let (_, own) = token_of(world, &member.seller, &["offers:read"]).await;
    let partner = world.partner(&member.seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    vec![
        ("an expired client's token", Shown::Bearer(own)),
        ("an expired consented token", Shown::Bearer(pair.access)),
        ("an expired session", Shown::Bearer(member.session())),
    ]
}

/// Tokens that became invalid, each in a different way.
async fn ended(world: &World) -> Vec<(&'static str, Shown)> {
    let (seller, closing) = (world.seller().await, world.seller().await);
    let (app, revoked) = token_of(world, &seller, &["offers:read"]).await;
    world.revoke(&app, &revoked).await.expect(200);
    let (app, suspended) = token_of(world, &seller, &["offers:read"]).await;
    world.moved(&app, "suspension").await;
    let (app, deleted) = token_of(world, &seller, &["offers:read"]).await;
    world.delete_application(&app).await;
    let personal = world.personal_token(&seller, &["offers:read"]).await;
    world.revoke_personal(&seller, &personal).await;
    let (_, of_closed) = token_of(world, &closing, &["offers:read"]).await;
    let personal_of_closed = world.personal_token(&closing, &["offers:read"]).await.token;
    world.close(&closing.id).await;
    let partner = world.partner(&seller, &["offers:read"]).await;
    let mut member = world.member().await;
    let disconnected = world.pair(&mut member.browser, &partner, "offers:read").await;
    world.revoke(&partner, &disconnected.refresh).await.expect(200);
    vec![
        ("a revoked token", Shown::Bearer(revoked)),
        ("a suspended application's token", Shown::Bearer(suspended)),
        ("a deleted application's token", Shown::Bearer(deleted)),
        ("a revoked personal token", Shown::Bearer(personal.token)),
        ("a closed seller's token", Shown::Bearer(of_closed)),
        (
            "a closed seller's personal token",
            Shown::Bearer(personal_of_closed),
        ),
        ("an ended connection's token", Shown::Bearer(disconnected.access)),
    ]
}

impl Credentials {
    pub(super) async fn issue(world: &World) -> Self {
        let clock = world.database.control_clock().await;
        let mut dead = ageing(world).await;
        clock.advance(TimeDelta::hours(13)).await;
        dead.extend(ended(world).await);
        let mut member = world.member().await;
        let mut living = Vec::new();
        for scope in Scope::ALL {
            let name = [scope.as_str()];
            let personal = world.personal_token(&member.seller, &name).await.token;
            let (_, own) = token_of(world, &member.seller, &name).await;
            living.push((format!("a personal token for {scope}"), personal, vec![scope]));
            living.push((format!("a client's token for {scope}"), own, vec![scope]));
        }
        let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        let every = world.personal_token(&member.seller, &all).await.token;
        living.push(("a personal token for all".to_owned(), every, Scope::ALL.to_vec()));
        // If an application loses a scope, its tokens lose it too.
        let (app, narrowed) = token_of(world, &member.seller, &["offers:read", "offers:write"]).await;
        world.set_scopes(&app, &["offers:read"]).await;
        let scopes = ["offers:read", "orders:read"];
        let partner = world.partner(&member.seller, &scopes).await;
        let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
        for (what, token) in [
            ("a narrowed application's token", narrowed),
            ("a consented token", pair.access),
        ] {
            living.push((what.to_owned(), token, vec![Scope::OffersRead]));
        }
        let asking = world.asking(&partner, "offers:read");
        let others = vec![
            ("a refresh token", pair.refresh),
            ("a code", world.code(&mut member.browser, &asking).await),
            ("a client secret", partner.client_secret),
            ("a client id", partner.client_id),
            ("a session", member.session()),
            ("a password", blackbox::PASSWORD.to_owned()),
        ];
        let operator = operator_tokens(world, ["create", "alive"]).await;
        let revoked = operator_tokens(world, ["create", "revoked"]).await;
        operator_tokens(world, ["revoke", &text(&revoked, "id")]).await;
        dead.push(("nothing", Shown::Nothing));
        dead.extend(MALFORMED.map(|header| (header, authorization(header))));
        let as_bearer = |(what, secret): &(&'static str, String)| (*what, Shown::Bearer(secret.clone()));
        dead.extend(others.iter().map(as_bearer));
        dead.push(("a session in its cookie", Shown::Cookie(member.session())));
        Self {
            dead,
            living,
            operator: text(&operator, "token"),
            revoked_operator: text(&revoked, "token"),
            others,
            member,
        }
    }

    /// A valid token with every scope.
    pub(super) fn token_for_everything(&self) -> &str {
        let mut living = self.living.iter();
        let (_, token, _) = living.find(|(_, _, scopes)| scopes.len() > 1).unwrap();
        token
    }
}
