//! HTTP Basic headers of clients: the whole header, and what stands in it behind the base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use web::basic::{self, ClientCredentials};

use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "basic",
    run,
    seeds: || {
        texts(&[
            "Basic QTpC",
            "basic  MDE5N2E1YzQtOGIxZS03YzNhLTlkMmYtNGU1YjZhN2M4ZDllOnBzX3NlX0J3Y0g=",
            "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e:ps_se_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "an%3Aid:a+secret%25:with+more",
            ":",
        ])
    },
    words: &[
        "Basic ", "BASIC\t", "Bearer ", ":", "%3A", "%00", "%", "+", "=", "==", "QTpC", "%C5%BC",
    ],
    grows: &[
        ("Basic ", "QTpC", ""),
        ("a:", "%25", ""),
        ("", ":", ""),
        ("Basic", " ", "QTpC"),
        ("a:", "+", ""),
    ],
};

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(found) = basic::read(text) {
        holds(text, &found);
    }
    // Bytes that are mutated seldom stay base64, so what stands behind it is mutated by itself.
    let header = format!("Basic {}", STANDARD.encode(text));
    match basic::read(&header) {
        Some(found) => holds(&header, &found),
        None => assert!(
            !text.contains(':') || text.contains(['%', '\0']),
            "an id and a secret without an escape are read: {text:?}"
        ),
    }
}

/// Written again, they are read again; and they are what a browser's own decoder makes of the two parts.
fn holds(header: &str, found: &ClientCredentials) {
    let scheme = header.split_once(' ').unwrap().0;
    assert!(scheme.eq_ignore_ascii_case("basic"));
    assert!(!found.client_id.contains('\0') && !found.secret.contains('\0'));
    let form = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let plain = format!("{}:{}", form(&found.client_id), form(&found.secret));
    let again = basic::read(&format!("Basic {}", STANDARD.encode(plain))).unwrap();
    assert!(
        again == *found,
        "{:?} became {:?}",
        found.client_id,
        again.client_id
    );
    let decoded = STANDARD
        .decode(header.split_once(' ').unwrap().1.trim_start())
        .unwrap();
    let sent = String::from_utf8(decoded).unwrap();
    for (part, read) in sent.splitn(2, ':').zip([&found.client_id, &found.secret]) {
        // As the value of a form, whose separators are escaped, since here they separate nothing.
        let value = format!("v={}", part.replace('&', "%26"));
        let (_, lenient) = url::form_urlencoded::parse(value.as_bytes()).next().unwrap();
        assert_eq!(lenient, read.as_str());
    }
}
