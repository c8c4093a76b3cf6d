//! What the sandbox prints once it serves: where everything is, and calls to copy.

use std::path::Path;

use super::credentials::Credentials;
use crate::config::AddressesMode;

/// The text. Its calls work as they stand in a POSIX shell with curl.
pub(super) fn text(credentials: &Credentials, data_dir: &Path, addresses: AddressesMode) -> String {
    let Credentials {
        base_url,
        backoffice_url,
        backoffice_token,
        ..
    } = credentials;
    let seller = credentials.sellers.first();
    let application = seller.and_then(|seller| seller.applications.first());
    let token = seller.map_or("", |seller| &seller.personal_token);
    let client_id = application.map_or("", |application| &application.client_id);
    let secret = application
        .and_then(|application| application.client_secret.as_deref())
        .unwrap_or_default();
    let offer = seller
        .and_then(|seller| seller.examples.offer.as_deref())
        .unwrap_or_default();
    let order = seller
        .and_then(|seller| seller.examples.order.as_deref())
        .unwrap_or_default();
    let (file, mails) = (data_dir.join("credentials.json"), data_dir.join("mail"));
    let agent = "FirstSteps/1.0";
    let receivers = match addresses {
        AddressesMode::Public => LIKE_PRODUCTION,
        AddressesMode::Any => LOCAL_RECEIVERS,
    };
    let receiver = match addresses {
        AddressesMode::Public => "https://example.com/hooks",
        AddressesMode::Any => "http://127.0.0.1:9000/hooks",
    };
    format!(
        "
The sandbox is ready.

  API           {base_url}
  docs          {base_url}/docs
  panel         {base_url}/panel   (sign in with an e-mail and password of the credentials)
  back office   {backoffice_url}
  credentials   {file}
  mail          {mails}

Try next:

  # Who am I?
  curl -s {base_url}/v1/me -A {agent} -H 'Authorization: Bearer {token}'

  # My offers, newest first; pass `next` as `after` to read on
  curl -s '{base_url}/v1/offers?limit=5' -A {agent} -H 'Authorization: Bearer {token}'

  # One offer
  curl -s {base_url}/v1/offers/{offer} -A {agent} -H 'Authorization: Bearer {token}'

  # Orders that are paid and wait to be shipped
  curl -s '{base_url}/v1/orders?status=processing&limit=5' -A {agent} -H 'Authorization: Bearer {token}'

  # Ship one of them. Say it again: the key makes it happen once, and the answer is the same. The buyer's mail is a file
  curl -si {base_url}/v1/orders/{order}/shipments -A {agent} -H 'Authorization: Bearer {token}' \\
    -H 'Content-Type: application/json' -H 'Idempotency-Key: my-first-shipment' \\
    -d '{{\"carrier\":\"inpost\",\"tracking_number\":\"LATER0001\"}}'

  # An access token for an application, as a program obtains it
  curl -s {base_url}/oauth/token -u {client_id}:{secret} -d grant_type=client_credentials

  # Events as they happen, pushed to a receiver. The answer has the secret that signs them, once. {receivers}
  curl -s {base_url}/v1/webhooks -A {agent} -H 'Authorization: Bearer {token}' \\
    -H 'Content-Type: application/json' -d '{{\"url\":\"{receiver}\",\"events\":[\"order.paid\",\"order.shipped\"]}}'

  # The marketplace's side: its sellers
  curl -s {backoffice_url}/sellers -H 'Authorization: Bearer {backoffice_token}'

  # What sellers and carriers did, to keep a shop in step
  curl -s {backoffice_url}/changes -H 'Authorization: Bearer {backoffice_token}'

Ctrl-C ends the sandbox; its data stay for the next start (--fresh begins anew).
",
        file = file.display(),
        mails = mails.display(),
    )
}

/// What is said of receivers where the contract's rule holds.
const LIKE_PRODUCTION: &str = "Receivers have to be public and https;\n  # start with `--webhook-addresses any` to try one on this machine";
/// What is said of them where anything goes.
const LOCAL_RECEIVERS: &str =
    "ANY address may be a receiver here,\n  # this machine included: never run a real service so";

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
        assert!(!usual.contains("ANY") && text(AddressesMode::Any).contains("ANY address"));
    }
}
