//! The text that the sandbox prints once it serves: addresses, the credentials file, and calls to copy.

use std::path::Path;

use orders::OrderId;
use webhooks::AddressPolicy;

use super::data_dir::{Credentials, SellerCredentials};

/// The text, from `guide.txt`. Its calls act for `seller`, and work unchanged in a POSIX shell with curl. The page
/// is served at `page_origin` alone, and `order` can be shipped now.
pub(super) fn text(
    credentials: &Credentials,
    seller: &SellerCredentials,
    data_dir: &Path,
    addresses: AddressPolicy,
    page_origin: &str,
    order: Option<OrderId>,
) -> String {
    let file = data_dir.join("credentials.json");
    let application = seller.applications.first();
    let secret = application.and_then(|application| application.client_secret.as_deref());
    let (receivers, receiver) = match addresses {
        AddressPolicy::Public => (
            "Receivers have to be public and https",
            "https://example.com/hooks",
        ),
        AddressPolicy::Local => (
            "Receivers are public and https,\n  # or on this machine",
            "http://127.0.0.1:9000/hooks",
        ),
        AddressPolicy::Any => (
            "ANY address may be a receiver here,\n  # this machine included: never run a real service so",
            "http://127.0.0.1:9000/hooks",
        ),
    };
    let order = order.map(|order| order.to_string());
    let order = order.as_deref().or(seller.examples.order.as_deref());
    format!(
        include_str!("guide.txt"),
        page_origin = page_origin,
        base_url = credentials.base_url,
        backoffice_url = credentials.backoffice_url,
        backoffice_token = credentials.backoffice_token,
        token = seller.account.personal_token,
        client_id = application.map_or("", |application| &application.client_id),
        secret = secret.unwrap_or_default(),
        offer = seller.examples.offer.as_deref().unwrap_or_default(),
        order = order.unwrap_or_default(),
        receivers = receivers,
        receiver = receiver,
        file = file.display(),
        mails = data_dir.join("mail").display(),
    )
}
