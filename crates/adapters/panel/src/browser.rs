//! Cookies with the browser's secret and the chosen language, and the policy of a page: it may only display
//! itself and send its own forms.
//!
//! One cookie holds the browser's secret, before and after signing in. CSRF tokens are derived from it, and
//! the browser is signed in while the store has a session under its hash. Signing in replaces the secret.

use accounts::SESSION_LIFETIME;
use actix_web::HttpResponse;
use actix_web::http::header::{
    CLEAR_SITE_DATA, CONTENT_SECURITY_POLICY, COOKIE, HeaderMap, HeaderValue, SET_COOKIE,
};
use oauth::BrowserSecret;
use url::{Host, Url};

use crate::texts::Language;

const BROWSER: &str = "seller_panel";
const LANGUAGE: &str = "seller_panel_language";
/// One year, in seconds.
const YEAR_IN_SECONDS: i64 = 365 * 24 * 3600;

/// The browser's secret, if it is well-formed.
pub(crate) fn presented(headers: &HeaderMap, https: bool) -> Option<BrowserSecret> {
    BrowserSecret::presented(cookie(headers, BROWSER, https)?)
}

/// The chosen language.
pub(crate) fn language(headers: &HeaderMap, https: bool) -> Option<Language> {
    Language::parse(cookie(headers, LANGUAGE, https)?)
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str, https: bool) -> Option<&'a str> {
    let name = full_name(name, https);
    let values = headers.get_all(COOKIE);
    // Each by itself: a cookie of another site of the domain may hold any bytes. A name is compared as the browser
    // did, which looks for `__Host-` at its very beginning: behind another space it protects nothing.
    let mut pairs = values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .map(|pair| pair.strip_prefix(b" ").unwrap_or(pair))
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The `__Host-` prefix makes browsers refuse the cookie unless it is `Secure`, for this exact host, and for
/// path `/`.
fn full_name(name: &str, https: bool) -> String {
    let prefix = if https { "__Host-" } else { "" };
    format!("{prefix}{name}")
}

/// Sets the browser's secret: before signing in as a session cookie, afterwards for the maximum lifetime of a
/// session.
pub(crate) fn set_browser(headers: &mut HeaderMap, secret: &BrowserSecret, signed_in: bool, https: bool) {
    let age = signed_in.then(|| SESSION_LIFETIME.num_seconds());
    set(headers, (BROWSER, secret.reveal()), age, https);
}

/// Deletes the secret, and clears whatever scripts of this origin have stored in the browser.
pub(crate) fn forget_browser(headers: &mut HeaderMap, https: bool) {
    headers.insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"storage\""));
    set(headers, (BROWSER, ""), Some(0), https);
}

/// Sets the cookie of the language.
pub(crate) fn set_language(headers: &mut HeaderMap, language: Language, https: bool) {
    let chosen = (LANGUAGE, language.as_str());
    set(headers, chosen, Some(YEAR_IN_SECONDS), https);
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

/// Lets the forms of a page lead to the origin of this address by a redirect. Browsers apply `form-action` to
/// every redirect of a form, not only to its first target.
pub(crate) fn allow_form_redirect_to(response: &mut HttpResponse, address: &str) {
    let policy = policy(targets(address).as_deref());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
}

/// `form_targets`: where forms may lead besides this origin.
pub(crate) fn policy(form_targets: Option<&str>) -> HeaderValue {
    let target = form_targets.map(|to| format!(" {to}")).unwrap_or_default();
    let text = format!(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'{target}; \
         frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The `form-action` sources for a redirect to this address: its origin (of an IPv6 address, which CSP 3
/// §2.3.1 excludes, the scheme), and all of `https`, since Chromium also checks where that page redirects.
fn targets(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let origin = match url.host()? {
        Host::Ipv6(_) => format!("{}:", url.scheme()),
        Host::Ipv4(_) | Host::Domain(_) => url.origin().ascii_serialization(),
    };
    Some(format!("{origin} https:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_other_sites_neither_hide_nor_replace_the_panels_own() {
        for sent in [
            b"__Host-seller_panel=own".as_slice(),
            b"a=b;__Host-seller_panel=own; c=d",
            b"name=\xff\xc4; __Host-seller_panel=own",
            "\u{2000}__Host-seller_panel=foreign; __Host-seller_panel=own".as_bytes(),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_bytes(sent).unwrap());
            assert_eq!(cookie(&headers, BROWSER, true), Some("own"), "{sent:?}");
        }
    }

    #[test]
    fn forms_lead_to_an_origin_and_from_there_to_others() {
        for (address, expected) in [
            ("http://127.0.0.1:9000/cb?x=1", "http://127.0.0.1:9000 https:"),
            ("https://app.example:8443/cb", "https://app.example:8443 https:"),
            ("https://1.1.1.1/cb", "https://1.1.1.1 https:"),
            ("http://[::1]:9000/cb", "http: https:"),
        ] {
            assert_eq!(targets(address).as_deref(), Some(expected));
        }
        assert_eq!(targets("nonsense"), None);
    }
}
