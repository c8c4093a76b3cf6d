//! What every carrier's client runs on.

mod breaker;
mod failure;
mod http;
mod line;
mod oauth;
mod spans;
mod tokens;

pub(crate) use failure::Failure;
pub(crate) use http::{Http, get, post, secret_header};
pub(crate) use line::{Line, Shared};
pub(crate) use oauth::ClientCredentials;
pub(crate) use tokens::{Token, TokenSource};
