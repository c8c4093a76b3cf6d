//! A credential of every kind: living, dead, and secrets that are no tokens.

use blackbox::{Member, Seller, World, run};
use oauth::Scope;
use serde_json::json;

use super::ended::{LATER, ageing, ended};
use super::shown::Shown;
use crate::PROGRAM;

/// Headers that carry no token of anybody's.
const MALFORMED: [(&str, &str); 7] = [
    ("an empty header", ""),
    ("a scheme alone", "Bearer"),
    ("garbage", "Bearer nonsense"),
    (
        "a token of the right form",
        "Bearer ps_at_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ),
    (
        "a personal token of the right form",
        "Bearer ps_pt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ),
    (
        "an operator's token of the right form",
        "Bearer ps_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ),
    ("an unsigned JWT", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."),
];

/// A living token: what it is, itself, and the scopes that it has.
type Living = (String, String, Vec<Scope>);

/// Everything that lets somebody in somewhere, or did.
pub(super) struct Credentials {
    /// What opens nothing on either listener, or not any more.
    pub(super) dead: Vec<(&'static str, Shown)>,
    /// A living token of each kind.
    pub(super) living: Vec<Living>,
    /// A living operator's token, and one that was revoked.
    pub(super) operator: String,
    pub(super) revoked_operator: String,
    /// Secrets that are no tokens.
    pub(super) others: Vec<(&'static str, String)>,
    pub(super) member: Member,
}

async fn operator_token(world: &World, name: &str) -> (String, String) {
    let environment = [("DATABASE_URL", world.database.url())];
    let made = ["admin", "operator-tokens", "create", name];
    let printed = run(PROGRAM, &made, &environment).await.success().output();
    let token = printed.split_whitespace().find(|word| word.starts_with("ps_op_"));
    let id = printed
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(|word| word.parse::<uuid::Uuid>().is_ok());
    (token.unwrap().to_owned(), id.unwrap().to_owned())
}

pub(super) fn session(member: &Member) -> String {
    let mut values = member.browser.cookies.values();
    values.find(|value| value.starts_with("ps_se_")).unwrap().clone()
}

async fn of_each_scope(world: &World, seller: &Seller) -> Vec<Living> {
    let mut living = Vec::new();
    for scope in Scope::ALL {
        let name = [scope.as_str()];
        let personal = world.personal_token(seller, &name).await.token;
        let app = world.application(seller, &name).await;
        let token = world.token(&app).await;
        living.push((format!("a personal token for {scope}"), personal, vec![*scope]));
        living.push((format!("a client's token for {scope}"), token, vec![*scope]));
    }
    let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let every = world.personal_token(seller, &all).await.token;
    living.push(("a personal token for all".to_owned(), every, Scope::ALL.to_vec()));
    living
}

/// What an application may no longer do its tokens may not either.
async fn narrowed(world: &World, seller: &Seller) -> Living {
    let narrowed = world.application(seller, &["offers:read", "offers:write"]).await;
    let token = world.token(&narrowed).await;
    let fewer = json!({"scopes": ["offers:read"]});
    world.adjust(&narrowed.client_id, &fewer).await.expect(200);
    (
        "a narrowed application's token".to_owned(),
        token,
        vec![Scope::OffersRead],
    )
}

impl Credentials {
    pub(super) async fn issue(world: &World) -> Self {
        let clock = world.database.control_clock().await;
        let mut dead = ageing(world).await;
        clock.advance(LATER).await;
        dead.extend(ended(world).await);

        let mut member = world.member().await;
        let mut living = of_each_scope(world, &member.seller).await;
        let partner = world
            .partner(&member.seller, &["offers:read", "orders:read"])
            .await;
        let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
        living.push((
            "a consented token".to_owned(),
            pair.access,
            vec![Scope::OffersRead],
        ));
        living.push(narrowed(world, &member.seller).await);

        let asking = world.asking(&partner, "offers:read");
        let others = vec![
            ("a refresh token", pair.refresh),
            ("a code", world.code(&mut member.browser, &asking).await),
            ("a client secret", partner.client_secret.clone()),
            ("a client id", partner.client_id.clone()),
            ("a session", session(&member)),
            ("a password", blackbox::PASSWORD.to_owned()),
        ];
        let (operator, _) = operator_token(world, "alive").await;
        let (revoked_operator, id) = operator_token(world, "revoked").await;
        let environment = [("DATABASE_URL", world.database.url())];
        let revoke = ["admin", "operator-tokens", "revoke", &id];
        run(PROGRAM, &revoke, &environment).await.success();

        dead.push(("nothing", Shown::Nothing));
        for (what, header) in MALFORMED {
            dead.push((what, Shown::Header(header.to_owned())));
        }
        for (what, secret) in &others {
            dead.push((*what, Shown::Bearer(secret.clone())));
        }
        dead.push(("a session in its cookie", Shown::Cookie(session(&member))));
        Self {
            dead,
            living,
            operator,
            revoked_operator,
            others,
            member,
        }
    }

    /// A living token with every scope.
    pub(super) fn token_for_everything(&self) -> &str {
        let (_, token, _) = self
            .living
            .iter()
            .find(|(_, _, scopes)| scopes.len() > 1)
            .unwrap();
        token
    }
}
