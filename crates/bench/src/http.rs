//! A very cheap HTTP/1.1 client: one keep-alive connection, one request at a time, responses by `Content-Length`.
//!
//! It shares the machine's cores with the server and PostgreSQL, so what it costs lowers what they can do. It knows just
//! what the product's own responses need: no chunked bodies, no interim responses.

mod connection;
mod response;

pub(crate) use connection::Connection;
pub(crate) use response::Response;
