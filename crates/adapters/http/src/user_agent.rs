//! The `User-Agent` that every request to `/v1` carries: `<AppName>/<Version>` (contract: Common rules).

use actix_web::http::header::{HeaderMap, USER_AGENT};
use web::{Code, Problem};

const LONGEST_NAME: usize = 64;

/// Refuses a request without exactly one good `User-Agent`. Two headers are none (D110).
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let mut given = headers.get_all(USER_AGENT);
    match (given.next(), given.next()) {
        (Some(only), None) if begins_well(only.as_bytes()) => Ok(()),
        _ => Err(Problem::new(
            Code::MissingUserAgent,
            "Send one User-Agent header such as MyShopSync/1.4 (+https://example.com/docs).",
        )),
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._-]{0,31}`: without an end anchor, so that one good
/// character of a version is enough (D110).
fn begins_well(text: &[u8]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let first = text.first().is_some_and(u8::is_ascii_alphanumeric);
    let name = text.iter().take_while(|byte| inner(byte)).count();
    let version = match text.get(name..) {
        Some([b'/', version, ..]) => version.is_ascii_alphanumeric(),
        _ => false,
    };
    first && name <= LONGEST_NAME && version
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn passes(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(USER_AGENT, HeaderValue::from_str(value).unwrap());
        }
        check(&headers).is_ok()
    }

    #[test]
    fn good_ones_pass() {
        for value in [
            "a/1",
            "MyShop_Sync-2.x/1.4.0-rc_1 (+https://example.com)",
            "curl/8.5.0",
            "A/1ż",
            "A/1/2",
        ] {
            assert!(passes(&[value]), "{value}");
        }
        let name = "n".repeat(64);
        assert!(passes(&[&format!("{name}/1")]));
        assert!(passes(&[&format!("{name}/{}", "1".repeat(100))]));
    }

    #[test]
    fn others_do_not() {
        for value in [
            "", "curl", "/1", "curl/", "-a/1", "a/-1", "a b/1", " a/1x y", "ą/1", "a/ 1", "(a)/1",
        ] {
            let raw = HeaderValue::from_str(value).unwrap();
            assert!(!begins_well(raw.as_bytes()), "{value}");
        }
        assert!(!passes(&[&format!("{}/1", "n".repeat(65))]));
        assert!(!passes(&[]));
        assert!(!passes(&["a/1", "a/1"]));
    }
}
