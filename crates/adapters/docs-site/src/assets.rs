//! The files that pages use, embedded. Their names carry a hash of their content, so that browsers may keep them for ever.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use web::look;

/// An embedded file.
pub(crate) struct Asset {
    /// Where pages find it; the name has the hash.
    pub(crate) path: String,
    pub(crate) content: &'static str,
    pub(crate) media_type: &'static str,
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The look that all pages of the product share.
pub(crate) static LOOK: LazyLock<Asset> = LazyLock::new(|| Asset::new("look", "css", look::STYLE, CSS));
/// What the documentation has beyond it.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("docs", "css", include_str!("../assets/docs.css"), CSS));
/// Copy buttons and a key for the search.
pub(crate) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("docs", "js", include_str!("../assets/docs.js"), JAVASCRIPT));
/// The icon in the browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", look::ICON, "image/svg+xml"));
/// Starts the explorer.
pub(crate) static EXPLORER: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("../assets/explorer.js");
    Asset::new("explorer", "js", content, JAVASCRIPT)
});
/// Swagger UI, which the explorer is.
pub(crate) static SWAGGER: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("../vendor/swagger-ui/swagger-ui-bundle.js");
    Asset::new("swagger-ui", "js", content, JAVASCRIPT)
});
/// Its look.
pub(crate) static SWAGGER_STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("../vendor/swagger-ui/swagger-ui.css");
    Asset::new("swagger-ui", "css", content, CSS)
});

impl Asset {
    fn new(stem: &str, extension: &str, content: &'static str, media_type: &'static str) -> Self {
        Self {
            path: format!("/docs/assets/{stem}-{}.{extension}", mark(content.as_bytes())),
            content,
            media_type,
        }
    }
}

/// The file at this path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let all = [
        &*LOOK,
        &*STYLE,
        &*SCRIPT,
        &*ICON,
        &*EXPLORER,
        &*SWAGGER,
        &*SWAGGER_STYLE,
    ];
    all.into_iter().find(|asset| asset.path == path)
}

/// Sixteen characters that stand for this content.
pub(crate) fn mark(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    URL_SAFE_NO_PAD.encode(digest).chars().take(16).collect()
}
