//! What the sandbox prints once it serves: where everything is, and calls to copy.

use std::path::Path;

use super::data_dir::{ApplicationCredentials, Credentials, Examples};
use crate::config::AddressesMode;

/// The text, from `guide.txt`. Its calls work as they stand in a POSIX shell with curl.
pub(super) fn text(credentials: &Credentials, data_dir: &Path, addresses: AddressesMode) -> String {
    let seller = credentials.sellers.first();
    let application = seller.and_then(|seller| seller.applications.first());
    let of_application = |value: fn(&ApplicationCredentials) -> &str| application.map_or("", value);
    let example = |value: fn(&Examples) -> Option<&String>| {
        seller
            .and_then(|seller| value(&seller.examples))
            .map_or("", String::as_str)
    };
    let (receivers, receiver) = match addresses {
        AddressesMode::Public => (
            "Receivers have to be public and https;\n  # start with `--webhook-addresses any` to try one on this machine",
            "https://example.com/hooks",
        ),
        AddressesMode::Any => (
            "ANY address may be a receiver here,\n  # this machine included: never run a real service so",
            "http://127.0.0.1:9000/hooks",
        ),
    };
    let path = |name: &str| data_dir.join(name).display().to_string();
    let (file, mails) = (path("credentials.json"), path("mail"));
    let values = [
        ("{base_url}", credentials.base_url.as_str()),
        ("{backoffice_url}", &credentials.backoffice_url),
        ("{backoffice_token}", &credentials.backoffice_token),
        ("{token}", seller.map_or("", |seller| &seller.personal_token)),
        (
            "{client_id}",
            of_application(|application| &application.client_id),
        ),
        (
            "{secret}",
            of_application(|application| application.client_secret.as_deref().unwrap_or_default()),
        ),
        ("{offer}", example(|examples| examples.offer.as_ref())),
        ("{order}", example(|examples| examples.order.as_ref())),
        ("{agent}", "FirstSteps/1.0"),
        ("{receivers}", receivers),
        ("{receiver}", receiver),
        ("{file}", &file),
        ("{mails}", &mails),
    ];
    let template = include_str!("guide.txt").to_owned();
    values
        .iter()
        .fold(template, |text, (name, value)| text.replace(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_everything_even_where_little_was_seeded() {
        let credentials = Credentials {
            base_url: "http://127.0.0.1:1".to_owned(),
            ..Credentials::default()
        };
        let text = |addresses| text(&credentials, Path::new("/tmp/x"), addresses);
        let usual = text(AddressesMode::Public);
        assert!(
            usual.contains("http://127.0.0.1:1/v1/me") && usual.contains("/tmp/x/credentials.json"),
            "{usual}"
        );
        assert!(!usual.contains("{a") && !usual.contains("_url}"), "{usual}");
        assert!(!usual.contains("ANY") && text(AddressesMode::Any).contains("ANY address"));
    }
}
