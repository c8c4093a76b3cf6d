//! The embedded files of the pages.

use std::sync::LazyLock;

use web::assets::Asset;
use web::theme;

/// The style sheet of every page.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("/panel/assets", "panel.css", theme::STYLE));

/// The icon in the browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("/panel/assets", "icon.svg", theme::ICON));
