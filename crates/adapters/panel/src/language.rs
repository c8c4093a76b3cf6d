//! The language of a page: the chosen one, or the one that the browser prefers.

use actix_web::http::header::{ACCEPT_LANGUAGE, HeaderMap};

use crate::texts::{self, Texts};

kernel::words! {
    /// The languages of the panel's texts, by their tags (RFC 5646).
    pub(crate) enum Language {
        English = "en",
        Polish = "pl",
    }
}

impl Language {
    /// Its name, in the language itself.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Polish => "Polski",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::English => Self::Polish,
            Self::Polish => Self::English,
        }
    }

    pub(crate) const fn texts(self) -> &'static Texts {
        match self {
            Self::English => &texts::ENGLISH,
            Self::Polish => &texts::POLISH,
        }
    }

    /// The language that the browser prefers (RFC 9110 §12.5.4); English if it names neither.
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        let mut best = (Self::English, 0.0);
        let values = headers.get_all(ACCEPT_LANGUAGE);
        let ranges = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        for (language, weight) in ranges.filter_map(range) {
            if weight > best.1 {
                best = (language, weight);
            }
        }
        best.0
    }
}

/// A supported language range with its weight, such as `pl-PL;q=0.8`.
fn range(text: &str) -> Option<(Language, f32)> {
    let mut parts = text.split(';').map(str::trim);
    let tag = parts.next()?.to_ascii_lowercase();
    let language = Language::parse(tag.split('-').next()?)?;
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |weight| weight.parse().ok())?;
    Some((language, weight))
}
