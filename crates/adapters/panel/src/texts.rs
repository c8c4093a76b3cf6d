//! The texts of the pages, in both languages side by side, and the language of a page: the chosen one, or the one that the browser
//! prefers. A text that lacks a language does not compile.

/// Declares the texts by page, each in English and then in Polish. All are strings unless a type is given.
macro_rules! texts {
    ($($(#[$doc:meta])* $page:ident: $type:ident {
        $($name:ident $(: $kind:ty)? => $english:expr, $polish:expr;)+
    })+) => {
        /// Every text in one language.
        pub(crate) struct Texts {
            pub(crate) language: Language,
            $($(#[$doc])* pub(crate) $page: $type,)+
        }
        $($(#[$doc])* pub(crate) struct $type {
            $(pub(crate) $name: kind!($($kind)?),)+
        })+
        pub(crate) static ENGLISH: Texts = Texts {
            language: Language::English,
            $($page: $type { $($name: $english,)+ },)+
        };
        pub(crate) static POLISH: Texts = Texts {
            language: Language::Polish,
            $($page: $type { $($name: $polish,)+ },)+
        };
    };
}

macro_rules! kind {
    () => { &'static str };
    ($kind:ty) => { $kind };
}

/// Declares a method of `Texts` per type of value: the English and then the Polish text of each value.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident: $type:ty { $($value:pat => $english:expr, $polish:expr;)+ })+) => {
        impl Texts {
            $($(#[$doc])* pub(crate) const fn $name(&self, value: $type) -> &'static str {
                let (english, polish) = match value { $($value => ($english, $polish),)+ };
                match self.language {
                    Language::English => english,
                    Language::Polish => polish,
                }
            })+
        }
    };
}

mod rules;
mod table;
mod values;

use actix_web::HttpRequest;
use actix_web::http::header::{ACCEPT_LANGUAGE, AcceptLanguage, Header as _, HeaderValue, Quality};

pub(crate) use rules::Rule;
pub(crate) use table::{ENGLISH, POLISH, Texts};

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
            Self::English => &ENGLISH,
            Self::Polish => &POLISH,
        }
    }

    /// The one of these languages that the browser prefers (RFC 9110 §12.5.4).
    pub(crate) fn preferred(request: &HttpRequest) -> Option<Self> {
        // Browsers name a few: thousands would take milliseconds.
        let sent = request.headers().get_all(ACCEPT_LANGUAGE);
        (sent.map(HeaderValue::len).sum::<usize>() <= 1024).then_some(())?;
        let mut ranges = AcceptLanguage::parse(request).ok()?;
        // Quality 0: not acceptable.
        ranges.retain(|range| range.quality > Quality::ZERO);
        let mut ranked = ranges.ranked().into_iter();
        ranked.find_map(|range| Self::parse(range.item()?.primary_language()))
    }
}

/// A title, and a text with advice.
pub(crate) type Message = (&'static str, &'static str);

impl Texts {
    /// A sentence for a rule that a value breaks.
    pub(crate) fn rule(&self, rule: &impl Rule) -> String {
        match self.language {
            Language::English => rule.english(),
            Language::Polish => format!("{}.", rule.polish()),
        }
    }

    /// The same for the redirect address on this line.
    pub(crate) fn address(&self, line: usize, rule: &impl Rule) -> String {
        match self.language {
            Language::English => format!("Address {line}: {rule}."),
            Language::Polish => format!("Pozycja {line}: {}.", rule.polish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_two_minutes_or_more_is_told_in_minutes() {
        for (seconds, english, polish) in [
            (119, "119 s", "119 s"),
            (120, "2 minutes", "2 minuty"),
            (241, "5 minutes", "5 minut"),
            (720, "12 minutes", "12 minut"),
            (1_320, "22 minutes", "22 minuty"),
            (3_600, "60 minutes", "60 minut"),
        ] {
            let text = |texts: &Texts| (texts.failures.too_many)(seconds).1;
            assert_eq!(text(&ENGLISH), format!("Wait {english}, then try again."));
            assert_eq!(text(&POLISH), format!("Odczekaj {polish} i spróbuj ponownie."));
        }
    }
}
