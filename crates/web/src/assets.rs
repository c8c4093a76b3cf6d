//! Embedded files that pages load. Their addresses contain a hash of the content, so browsers may cache them
//! forever.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

pub struct Asset {
    /// Its file name, without the hash.
    pub name: &'static str,
    /// Its path, with the hash.
    pub address: String,
    pub content: &'static str,
    pub media_type: &'static str,
}

impl Asset {
    /// `name` is a file name with the extension `css`, `js` or `svg`; `folder` is its path without a trailing
    /// slash.
    pub fn new(folder: &str, name: &'static str, content: &'static str) -> Self {
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        Self {
            name,
            address: format!("{folder}/{stem}-{}.{extension}", hash(content.as_bytes())),
            content,
            media_type: match extension {
                "css" => "text/css; charset=utf-8",
                "js" => "text/javascript; charset=utf-8",
                _ => "image/svg+xml",
            },
        }
    }

    pub fn response(&self) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, self.media_type))
            .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
            .body(self.content)
    }
}

/// 16 characters of the content's SHA-256.
pub fn hash(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    URL_SAFE_NO_PAD.encode(digest).chars().take(16).collect()
}
