//! The language of a page: the chosen one, or the one that the browser prefers.

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptLanguage, Header as _, Quality};

use crate::texts::{self, Texts};

kernel::words! {
    /// The languages of the panel's texts, by their tags (RFC 5646).
    pub(crate) enum Language {
        English = "en",
        Polish = "pl",
    }
}

impl Language {
    pub(crate) const fn texts(self) -> &'static Texts {
        match self {
            Self::English => &texts::ENGLISH,
            Self::Polish => &texts::POLISH,
        }
    }

    /// The one of these languages that the browser prefers (RFC 9110 §12.5.4).
    pub(crate) fn preferred(request: &HttpRequest) -> Option<Self> {
        let mut ranges = AcceptLanguage::parse(request).ok()?;
        // Quality 0: not acceptable.
        ranges.retain(|range| range.quality > Quality::ZERO);
        let mut ranked = ranges.ranked().into_iter();
        ranked.find_map(|range| Self::parse(range.item()?.primary_language()))
    }
}
