//! The small words of the protocol: tokens, codes, secrets, ids, scopes, numbers. Each has one spelling, and what is read is what
//! was sent.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::OfferId;
use oauth::{
    BearerToken, BrowserSecret, ClientId, CodeChallenge, CodeVerifier, Credential, CredentialKind, Email,
    Scope, ScopeSet, TokenKind,
};
use orders::{Carrier, OrderRef, TrackingNumber};
use url::Url;
use webhooks::{WebhookSecret, signature};

use crate::held::is_printable;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "credentials",
    run,
    seeds: || {
        texts(&[
            "ps_at_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
            "ps_pt_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
            "ps_rt_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
            "ps_ac_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
            "ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "ps_se_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "psa_00000000000000000000000000000abc",
            "offers:read offers:write orders:read",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e",
            "PL-2026-17",
            "620000000000000000000001",
            "anna@shop.example",
        ])
    },
    words: &[
        "ps_at_",
        "ps_rt_",
        "ps_wh_",
        "psa_",
        "offers:read",
        " ",
        "AAAA",
        "-",
        "_",
        "=",
        "{",
        "urn:uuid:",
        "@",
    ],
    grows: &[("", "offers:read ", ""), ("ps_at_", "A", ""), ("", "scope# ", "")],
};

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    tokens(text);
    ids(text);
    scopes(text);
    if let Ok(number) = TrackingNumber::new(text.to_owned()) {
        for carrier in Carrier::ALL {
            let url = carrier.tracking_url(&number);
            assert!(url.is_none_or(|url| Url::parse(&url).is_ok_and(|read| read.as_str() == url)));
        }
    }
    if let Ok(verifier) = CodeVerifier::new(text.to_owned()) {
        let challenge = CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap();
        assert_eq!(
            challenge.is_met_by(&verifier),
            text == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        );
    }
    if let Ok(address) = Email::new(text.to_owned()) {
        assert_eq!(address.as_str(), text);
        assert!(text.len() <= 254 && text.contains('@') && !text.chars().any(char::is_control));
    }
}

/// A token names its family in the bytes that it is written with, and is hashed as it was sent.
fn tokens(text: &str) {
    let written = |prefix: &str, family: &[u8]| {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.strip_prefix(prefix).expect("its prefix"))
            .expect("base64url");
        assert!(bytes.len() == 48 && bytes.starts_with(family));
        assert_eq!(
            format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)),
            text,
            "a second spelling"
        );
    };
    if let Some(token) = BearerToken::parse(text) {
        assert_eq!(token.reveal(), text);
        assert!(matches!(token.kind(), TokenKind::Access | TokenKind::Personal));
        written(token.kind().prefix(), token.key().family.uuid().as_bytes());
    }
    for kind in [CredentialKind::AuthorizationCode, CredentialKind::RefreshToken] {
        if let Some(credential) = Credential::parse(kind, text) {
            assert_eq!(credential.reveal(), text);
            written(kind.prefix(), credential.key().family.uuid().as_bytes());
        }
    }
    if let Ok(secret) = WebhookSecret::parse(text.to_owned()) {
        let signed = signature(&secret, text.as_bytes());
        let digits = signed.strip_prefix("sha256=").unwrap();
        assert!(
            digits.len() == 64
                && digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        );
    }
    if let Some(secret) = BrowserSecret::presented(text) {
        assert_eq!(secret.reveal(), text);
        assert!(secret.has_sent(&secret.csrf_token()) && !secret.has_sent(text));
    }
}

fn ids(text: &str) {
    if let Ok(id) = text.parse::<ClientId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(id) = text.parse::<OfferId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Some(OrderRef::Number(number)) = OrderRef::parse(text) {
        assert_eq!(number.as_str(), text);
    }
}

fn scopes(text: &str) {
    match ScopeSet::parse(text) {
        Ok(scopes) => {
            assert_eq!(ScopeSet::parse(&scopes.to_string()), Ok(scopes));
            let names = text.split(' ').filter(|name| !name.is_empty());
            assert!(
                names
                    .map(Scope::parse)
                    .all(|scope| scope.is_some_and(|scope| scopes.contains(scope)))
            );
        }
        Err(unknown) => {
            assert!(text.contains(&unknown.0) && Scope::parse(&unknown.0).is_none());
            if !unknown.0.chars().any(char::is_control) {
                is_printable(&unknown.to_string(), text.len());
            }
        }
    }
}
