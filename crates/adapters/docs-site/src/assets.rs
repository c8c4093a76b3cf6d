//! The embedded files that pages load. Their names contain a hash of the content, so browsers may cache them
//! forever.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use web::theme;

/// An embedded file.
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) address: String,
    pub(crate) content: &'static str,
    pub(crate) media_type: &'static str,
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

pub(crate) static ASSETS: LazyLock<[Asset; 8]> = LazyLock::new(|| {
    [
        ("look.css", CSS, theme::STYLE),
        ("docs.css", CSS, include_str!("../assets/docs.css")),
        ("docs.js", JAVASCRIPT, include_str!("../assets/docs.js")),
        ("icon.svg", "image/svg+xml", theme::ICON),
        (
            "highlight.js",
            JAVASCRIPT,
            include_str!("../vendor/highlight.js/highlight.min.js"),
        ),
        ("reference.css", CSS, include_str!("../assets/reference.css")),
        ("reference.js", JAVASCRIPT, include_str!("../assets/reference.js")),
        (
            "scalar.js",
            JAVASCRIPT,
            include_str!("../vendor/scalar/standalone.js"),
        ),
    ]
    .map(|(name, media_type, content)| {
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        Asset {
            name,
            address: format!("/docs/assets/{stem}-{}.{extension}", hash(content.as_bytes())),
            content,
            media_type,
        }
    })
});

/// The path of the asset with this name.
pub(crate) fn address(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or("", |asset| asset.address.as_str())
}

/// 16 characters of the content's SHA-256.
pub(crate) fn hash(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    URL_SAFE_NO_PAD.encode(digest).chars().take(16).collect()
}
