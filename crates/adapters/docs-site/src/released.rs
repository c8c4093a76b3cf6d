//! The OpenAPI documents that were released, for those who want to know what has changed since.

use std::sync::LazyLock;

use crate::DocsSettings;

/// The files, found when the program is built: path in the repository and text.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/released.rs"));

/// The origin in them: that of a program without any configuration.
const ORIGIN: &str = "http://127.0.0.1:8080";

/// A released document.
pub(crate) struct Released {
    /// Its path in the repository.
    pub(crate) file: &'static str,
    /// Where it is on the site.
    pub(crate) path: String,
    text: &'static str,
}

/// All of them.
pub(crate) static RELEASED: LazyLock<Vec<Released>> = LazyLock::new(|| {
    let released = FILES.iter().map(|(file, text)| Released {
        file,
        path: format!("/{file}"),
        text,
    });
    released.collect()
});

impl Released {
    /// The document as it would be served at this origin, so that nothing differs from what is served but what has changed.
    pub(crate) fn json(&self, settings: &DocsSettings) -> String {
        self.text.replace(ORIGIN, &settings.public_url)
    }
}
