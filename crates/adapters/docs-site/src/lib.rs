//! The documentation under `/docs` of the public listener: the guides, the API reference, the errors, the changelog with its
//! feed, and a search over all of it.
//!
//! Everything is embedded in the program and rendered once, when the site is made ([`Docs::new`]); pages ask no other origin
//! for anything and are whole without scripts. The reference is made of the OpenAPI document that the same program serves,
//! the errors of the page that is held complete against the table of codes.

mod assets;
mod changelog;
mod errors;
mod examples;
mod feed;
mod guides;
mod highlight;
mod layout;
mod listener;
mod markdown;
mod reference;
mod released;
mod search;
mod security;
mod sequence;
mod site;

#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use actix_web::web::{ServiceConfig, scope, to};
use kernel::Randomness;
use thiserror::Error;

/// What the operator chooses about the documentation.
#[derive(Debug, Clone)]
pub struct DocsSettings {
    /// The origin that readers use, without a trailing slash. Ids and links of the feed begin with it; browsers are told to
    /// stay with https where it is https.
    pub public_url: String,
    /// What the service is called on every page.
    pub service_name: String,
}

/// The site, rendered. Clones share it.
#[derive(Clone)]
pub struct Docs {
    site: Arc<site::Site>,
    randomness: Arc<dyn Randomness>,
    https: bool,
}

/// The site could not be rendered.
#[derive(Debug, Error)]
pub enum DocsError {
    /// A template failed.
    #[error("a page of the documentation could not be rendered")]
    Template(#[from] askama::Error),
}

impl Docs {
    /// Renders every page; `openapi` is the OpenAPI document of this program, as JSON. `randomness` makes trace ids.
    pub fn new(
        settings: &DocsSettings,
        openapi: &str,
        randomness: Arc<dyn Randomness>,
    ) -> Result<Self, DocsError> {
        Ok(Self {
            site: Arc::new(site::Site::new(settings, openapi)?),
            randomness,
            https: settings.public_url.starts_with("https://"),
        })
    }
}

/// Serves `/docs` and all below it; call it once for each server thread, and before the listener that takes every request
/// that nobody else does.
pub fn configure(docs: Docs) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let listener = Rc::new(listener::Listener::new(docs));
        config.service(scope("/docs").default_service(to(move |request, payload| {
            let listener = Rc::clone(&listener);
            async move { listener.serve(&request, payload) }
        })));
    }
}
