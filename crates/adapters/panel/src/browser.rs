//! Cookies: the secret of the browser, and the language that was chosen.
//!
//! One cookie carries the browser's secret, before signing in as after it: its forms prove by it where they come from, and
//! while the store has a session under its hash, somebody is signed in. Signing in gives the browser another one.

use actix_web::http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use oauth::{BrowserSecret, SESSION_LIFETIME};

use crate::language::Language;

const BROWSER: &str = "seller_panel";
const LANGUAGE: &str = "seller_panel_language";
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
/// A year, in seconds.
const LONG: i64 = 365 * 24 * 3600;

/// The cookies of a request.
pub(crate) struct Cookies<'a> {
    headers: &'a HeaderMap,
    https: bool,
}

impl<'a> Cookies<'a> {
    pub(crate) fn new(headers: &'a HeaderMap, https: bool) -> Self {
        Self { headers, https }
    }

    /// The browser's secret, where it has one that can be ours.
    pub(crate) fn browser(&self) -> Option<BrowserSecret> {
        BrowserSecret::presented(self.value(BROWSER)?)
    }

    /// The language that was chosen.
    pub(crate) fn language(&self) -> Option<Language> {
        Language::parse(self.value(LANGUAGE)?)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        let name = full_name(name, self.https);
        let values = self.headers.get_all(COOKIE);
        let mut pairs = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// The prefix makes browsers refuse the cookie unless it is `Secure`, of this very host, and for the whole of it.
fn full_name(name: &str, https: bool) -> String {
    let prefix = if https { "__Host-" } else { "" };
    format!("{prefix}{name}")
}

/// Gives the browser a secret: for as long as it runs before signing in, for as long as a session can last after it.
pub(crate) fn set_browser(headers: &mut HeaderMap, secret: &BrowserSecret, signed_in: bool, https: bool) {
    let age = signed_in.then(|| SESSION_LIFETIME.num_seconds());
    set(headers, (BROWSER, secret.reveal()), age, https);
}

/// Takes the secret away, and with it whatever scripts of this origin have kept in the browser.
pub(crate) fn forget_browser(headers: &mut HeaderMap, https: bool) {
    headers.insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"storage\""));
    set(headers, (BROWSER, ""), Some(0), https);
}

/// Remembers a language.
pub(crate) fn set_language(headers: &mut HeaderMap, language: Language, https: bool) {
    set(headers, (LANGUAGE, language.code()), Some(LONG), https);
}

fn set(headers: &mut HeaderMap, (name, value): (&str, &str), age: Option<i64>, https: bool) {
    let age = age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
    let secure = if https { "; Secure" } else { "" };
    let name = full_name(name, https);
    let cookie = format!("{name}={value}; Path=/{age}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.append(SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_secret_is_found_among_other_cookies() {
        let secret = BrowserSecret::from_random(&[1; 32]);
        let cookie = format!(
            "other=1; seller_panel={}; seller_panel_language=pl",
            secret.reveal()
        );
        let request = TestRequest::get()
            .insert_header((COOKIE, cookie))
            .to_http_request();
        let cookies = Cookies::new(request.headers(), false);
        assert_eq!(cookies.browser().unwrap().hash(), secret.hash());
        assert_eq!(cookies.language(), Some(Language::Polish));
        assert!(Cookies::new(request.headers(), true).browser().is_none());
    }

    #[test]
    fn under_https_cookies_are_bound_to_the_host() {
        let mut headers = HeaderMap::new();
        set_browser(&mut headers, &BrowserSecret::from_random(&[1; 32]), true, true);
        let cookie = headers.get(SET_COOKIE).unwrap().to_str().unwrap();
        assert!(cookie.starts_with("__Host-seller_panel=ps_se_"), "{cookie}");
        assert!(
            cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"),
            "{cookie}"
        );
    }
}
