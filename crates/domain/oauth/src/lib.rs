//! Applications, scopes, grants and tokens: the authorization to call the API.

mod application;
mod authorization;
mod client_id;
mod consent;
mod edit;
mod exchange;
mod family;
mod link;
mod pkce;
mod ports;
mod principal;
mod rate;
mod registration;
mod rule;
mod scope;
mod secret;
mod status;

pub use application::*;
pub use authorization::*;
pub use client_id::*;
pub use consent::*;
pub use edit::*;
pub use exchange::*;
pub use family::*;
pub use link::*;
pub use pkce::*;
pub use ports::*;
pub use principal::*;
pub use rate::*;
pub use registration::*;
pub use rule::*;
pub use scope::*;
pub use secret::*;
pub use status::*;
