//! What the document says of an operation beyond what the pipeline acts on.

use actix_web::http::StatusCode;
use uuid::Uuid;
use web::Problem;
use web::deprecation::Deprecation;
use web::schema::Node;

use crate::document::examples;

/// An operation as developers read of it. Nothing here has a default, so that no operation can be added without.
pub(crate) struct Declared {
    /// `operationId`. Clients are generated from it, so it never changes.
    pub(crate) id: &'static str,
    /// What it belongs to.
    pub(crate) tag: Tag,
    /// A few words, without a full stop.
    pub(crate) summary: &'static str,
    /// Sentences (Markdown).
    pub(crate) description: &'static str,
    /// What `{id}` in the path names, where it is there.
    pub(crate) resource: Option<Resource>,
    /// The query's parameters, in the order of `PARAMETERS`.
    pub(crate) parameters: &'static [Parameter],
    /// The JSON that is sent.
    pub(crate) body: Option<Body>,
    /// The good answer.
    pub(crate) success: Success,
    /// That it goes away. A field of a body that does says so in its schema ([`Node::deprecated`]).
    pub(crate) deprecated: Option<&'static Deprecation>,
    /// Its own refusals, as they are answered: one for each code that follows neither from its scope, nor from its path, nor
    /// from its effect.
    pub(crate) refusals: &'static [fn() -> Problem],
}

/// What an id in a path names.
pub(crate) struct Resource {
    /// A sentence.
    pub(crate) description: &'static str,
    /// The one that examples are about.
    pub(crate) example: Uuid,
}

/// A query parameter.
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: &'static str,
    /// Sentences.
    pub(crate) description: &'static str,
    /// What its value must be.
    pub(crate) schema: fn() -> Node,
    /// That it goes away.
    pub(crate) deprecated: Option<&'static Deprecation>,
}

/// A request's body.
pub(crate) struct Body {
    /// Made of the shape that decodes it.
    pub(crate) schema: fn() -> Node,
    /// One that is taken.
    pub(crate) example: fn() -> Node,
}

/// A good answer.
pub(crate) enum Success {
    /// JSON.
    Json {
        /// 200 or 201.
        status: StatusCode,
        /// A sentence.
        description: &'static str,
        /// Made of the view that writes it.
        schema: fn() -> Node,
        /// The whole of one.
        example: fn() -> Node,
    },
    /// 204.
    NoContent {
        /// A sentence.
        description: &'static str,
    },
}

/// What operations are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Account,
    Offers,
    Orders,
    Shipments,
    Webhooks,
    Events,
    Authorization,
}

impl Tag {
    /// All of them, in the contract's order.
    pub(crate) const ALL: [Self; 7] = [
        Self::Authorization,
        Self::Account,
        Self::Offers,
        Self::Orders,
        Self::Shipments,
        Self::Webhooks,
        Self::Events,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Account => "Account",
            Self::Offers => "Offers",
            Self::Orders => "Orders",
            Self::Shipments => "Shipments",
            Self::Webhooks => "Webhooks",
            Self::Events => "Events",
            Self::Authorization => "Authorization",
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Account => "Whose token it is and what it may do.",
            Self::Offers => {
                "The products that the seller lists: reading them, and changing price, stock and status."
            }
            Self::Orders => "What buyers bought, as far as it is the seller's: its own items alone.",
            Self::Shipments => "Reporting that a parcel is on its way.",
            Self::Webhooks => "Subscriptions to events, and the history of their deliveries.",
            Self::Events => "What subscribers are sent.",
            Self::Authorization => "OAuth 2.0: consent, tokens, revocation, metadata.",
        }
    }
}

impl Resource {
    pub(crate) const OFFER: Self = Self {
        description: "The offer's id.",
        example: examples::OFFER,
    };
    pub(crate) const ORDER: Self = Self {
        description: "The order's id, or its number.",
        example: examples::ORDER,
    };
    pub(crate) const WEBHOOK: Self = Self {
        description: "The subscription's id.",
        example: examples::WEBHOOK,
    };
}

impl Parameter {
    /// `fields`; which there are, the document adds.
    pub(crate) const FIELDS: Self = Self {
        name: "fields",
        description: "The fields wanted, separated by commas, each by its name at the top level. `id` always comes along where \
                      there is one. All of them where this is left out.",
        schema: web::schema::string,
        deprecated: None,
    };

    /// Whether these are the parameters of these names, in their order; decided where the program is compiled.
    pub(crate) const fn are_named(parameters: &[Self], names: &[&str]) -> bool {
        match (parameters, names) {
            ([], []) => true,
            ([first, parameters @ ..], [name, names @ ..]) => {
                is_same(first.name.as_bytes(), name.as_bytes()) && Self::are_named(parameters, names)
            }
            _ => false,
        }
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}
