//! How callers prove who they are (contract: Authentication).

use oauth::Scope;
use web::schema::Node;

/// The schemes that operations refer to.
pub(super) fn schemes(public_url: &str) -> Node {
    let token_url = format!("{public_url}/oauth/token");
    let scopes = || {
        Scope::ALL
            .iter()
            .map(|scope| (scope.as_str(), label(*scope).into()))
            .collect::<Node>()
    };
    let client_credentials = Node::of([("tokenUrl", token_url.as_str().into()), ("scopes", scopes())]);
    let code = Node::of([
        ("authorizationUrl", format!("{public_url}/oauth/authorize").into()),
        ("tokenUrl", token_url.as_str().into()),
        ("refreshUrl", token_url.as_str().into()),
        ("scopes", scopes()),
    ]);
    let flows = Node::of([
        ("clientCredentials", client_credentials),
        ("authorizationCode", code),
    ]);
    Node::of([
        (
            "oauth2",
            Node::of([
                ("type", "oauth2".into()),
                (
                    "description",
                    "`client_credentials` over the application owner's own account, or `authorization_code` with PKCE (S256) \
                     over that of a seller who consents. Access tokens live for 12 hours."
                        .into(),
                ),
                ("flows", flows),
            ]),
        ),
        (
            "bearer",
            Node::of([
                ("type", "http".into()),
                ("scheme", "bearer".into()),
                ("description", "An access token, or a personal token from the panel. Both are opaque.".into()),
            ]),
        ),
        (
            "client",
            Node::of([
                ("type", "http".into()),
                ("scheme", "basic".into()),
                ("description", "An application: `client_id` and `client_secret`.".into()),
            ]),
        ),
    ])
}

/// What a token of an operation needs.
pub(super) fn of_v1(scope: Option<Scope>) -> Node {
    let scopes: Vec<Node> = scope.iter().map(|scope| scope.as_str().into()).collect();
    vec![
        Node::of([("oauth2", scopes.clone().into())]),
        Node::of([("bearer", scopes.into())]),
    ]
    .into()
}

/// An application proves itself by HTTP Basic, or by what it says in the body.
pub(crate) fn of_client() -> Node {
    vec![Node::of([("client", Vec::new().into())]), Node::of([])].into()
}

/// The contract's label of a scope.
fn label(scope: Scope) -> &'static str {
    match scope {
        Scope::OffersRead => "read offers",
        Scope::OffersWrite => "create and edit offers, change prices and stock",
        Scope::OrdersRead => "read orders and buyer data",
        Scope::ShipmentsWrite => "report shipments (buyer is notified)",
        Scope::SettingsRead => "read sales settings",
        Scope::SettingsWrite => "change sales settings",
        Scope::OrdersWrite
        | Scope::ShipmentsRead
        | Scope::ReturnsRead
        | Scope::ReturnsWrite
        | Scope::PricelistsRead
        | Scope::PricelistsWrite
        | Scope::PoliciesRead
        | Scope::PoliciesWrite
        | Scope::BillingRead
        | Scope::Messaging
        | Scope::ProfileRead => "reserved for an announced resource",
    }
}
