//! The embedded files of the pages.

use std::sync::LazyLock;

use web::assets::Asset;
use web::theme;

pub(crate) static ASSETS: LazyLock<[Asset; 6]> = LazyLock::new(|| {
    [
        ("look.css", theme::STYLE),
        ("sandbox.css", include_str!("../assets/sandbox.css")),
        ("htmx.js", include_str!("../vendor/htmx.min.js")),
        ("sse.js", include_str!("../vendor/sse.min.js")),
        ("sandbox.js", include_str!("../assets/sandbox.js")),
        ("icon.svg", theme::ICON),
    ]
    .map(|(name, content)| Asset::new("/sandbox/assets", name, content))
});

/// The path of the asset with this name.
pub(crate) fn address(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or("", |asset| asset.address.as_str())
}
