//! The embedded files that pages load.

use std::sync::LazyLock;

use web::assets::Asset;
use web::theme;

pub(crate) static ASSETS: LazyLock<[Asset; 8]> = LazyLock::new(|| {
    [
        ("look.css", theme::STYLE),
        ("docs.css", include_str!("../assets/docs.css")),
        ("docs.js", include_str!("../assets/docs.js")),
        ("icon.svg", theme::ICON),
        (
            "highlight.js",
            include_str!("../vendor/highlight.js/highlight.min.js"),
        ),
        ("reference.css", include_str!("../assets/reference.css")),
        ("reference.js", include_str!("../assets/reference.js")),
        ("scalar.js", include_str!("../vendor/scalar/standalone.js")),
    ]
    .map(|(name, content)| Asset::new("/docs/assets", name, content))
});

/// The path of the asset with this name.
pub(crate) fn address(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or("", |asset| asset.address.as_str())
}
