//! The embedded files of the pages. Their names contain a hash of the content, so browsers may cache them
//! forever.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use web::theme;

/// An embedded file.
pub(crate) struct Asset {
    /// The file name, including the hash.
    name: String,
    content: &'static str,
    media_type: HeaderValue,
}

/// The style sheet of every page.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let media_type = HeaderValue::from_static("text/css; charset=utf-8");
    Asset::new("panel", "css", theme::STYLE, media_type)
});

/// The icon in the browser's tab.
pub(crate) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let media_type = HeaderValue::from_static("image/svg+xml");
    Asset::new("icon", "svg", theme::ICON, media_type)
});

impl Asset {
    fn new(stem: &str, extension: &str, content: &'static str, media_type: HeaderValue) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
        let hash: String = URL_SAFE_NO_PAD.encode(digest).chars().take(16).collect();
        Self {
            name: format!("{stem}-{hash}.{extension}"),
            content,
            media_type,
        }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> String {
        format!("/panel/assets/{}", self.name)
    }
}

/// The file with this name.
pub(crate) fn find(name: &str) -> Option<HttpResponse> {
    let all = [&*STYLE, &*ICON];
    let asset = all.into_iter().find(|asset| asset.name == name)?;
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(asset.content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, asset.media_type.clone());
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(CACHE_CONTROL, for_ever);
    Some(response)
}
