//! How the product looks in a browser: one style sheet and one icon, so that the panel and the documentation are one product.

/// The style sheet: colours for light and dark, type, the frame of a page, its blocks and forms.
pub const STYLE: &str = include_str!("../assets/look.css");

/// The icon in the browser's tab (SVG).
pub const ICON: &str = include_str!("../assets/icon.svg");
