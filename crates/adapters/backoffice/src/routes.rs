//! All operations of the back office, one line for each.

use actix_web::http::Method;
use web::route::Route;

use crate::BackOffice;
use crate::applications::{
    AdjustApplication, DeleteApplication, ListApplications, MoveApplication, ReadApplication,
    RegisterApplication,
};
use crate::changes::ListChanges;
use crate::health::Probe;
use crate::import::ImportOffers;
use crate::offers::{ModerateOffer, PriceOffer, PutOffer, ReadOffer};
use crate::orders::{EraseBuyer, MoveOrder, PlaceOrder, ReadOrder, ShipOrder};
use crate::personal_tokens::{IssueToken, RevokeToken};
use crate::policy::Access;
use crate::sellers::{CloseSeller, CreateSeller, InviteSeller, ListSellers, MakeSignInLink, ReadSeller};

/// Operations of a listener.
pub(crate) type Table = &'static [Route<BackOffice>];

/// Every operation.
pub(crate) static TABLE: Table = &[
    Route::read::<Probe>("/healthz"),
    Route::read::<Probe>("/readyz"),
    Route::read::<Probe>("/metrics"),
    Route::write::<CreateSeller>(Method::POST, "/sellers"),
    Route::read::<ListSellers>("/sellers"),
    Route::read::<ReadSeller>("/sellers/{seller}"),
    Route::write::<CloseSeller>(Method::POST, "/sellers/{seller}/closure"),
    Route::write::<InviteSeller>(Method::POST, "/sellers/{seller}/invitations"),
    Route::write::<MakeSignInLink>(Method::POST, "/sellers/{seller}/sign-in-links"),
    Route::write::<PutOffer>(Method::PUT, "/sellers/{seller}/offers/{offer}"),
    Route::read::<ReadOffer>("/sellers/{seller}/offers/{offer}"),
    Route::write::<ModerateOffer>(Method::POST, "/sellers/{seller}/offers/{offer}/moderation"),
    Route::write::<PriceOffer>(Method::POST, "/sellers/{seller}/offers/{offer}/automatic-price"),
    Route::stream::<ImportOffers>("/sellers/{seller}/offers:import"),
    Route::write::<RegisterApplication>(Method::POST, "/sellers/{seller}/applications"),
    Route::read::<ListApplications>("/sellers/{seller}/applications"),
    Route::write::<IssueToken>(Method::POST, "/sellers/{seller}/personal-tokens"),
    Route::write::<RevokeToken>(Method::DELETE, "/sellers/{seller}/personal-tokens/{token}"),
    Route::read::<ReadApplication>("/applications/{client_id}"),
    Route::write::<AdjustApplication>(Method::PATCH, "/applications/{client_id}"),
    Route::write::<DeleteApplication>(Method::DELETE, "/applications/{client_id}"),
    Route::write::<MoveApplication>(Method::POST, "/applications/{client_id}/acceptance"),
    Route::write::<MoveApplication>(Method::POST, "/applications/{client_id}/suspension"),
    Route::write::<MoveApplication>(Method::POST, "/applications/{client_id}/reinstatement"),
    Route::write::<PlaceOrder>(Method::POST, "/orders"),
    Route::read::<ReadOrder>("/orders/{order}"),
    Route::write::<MoveOrder>(Method::POST, "/orders/{order}/payment"),
    Route::write::<MoveOrder>(Method::POST, "/orders/{order}/cancellation"),
    Route::write::<MoveOrder>(Method::POST, "/orders/{order}/delivery"),
    Route::write::<ShipOrder>(Method::POST, "/orders/{order}/shipment"),
    Route::write::<EraseBuyer>(Method::POST, "/orders/{order}/buyer-erasure"),
    Route::read::<ListChanges>("/changes"),
];

/// The operations of a process that runs only workers: the first of [`TABLE`].
pub(crate) static PROBES: Table = TABLE.split_at(3).0;

/// Method, path and need of a token of every operation, for tests.
pub fn calls() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    TABLE
        .iter()
        .map(|route| (route.method.as_str(), route.path, route.scope != Access::Open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_health_and_metrics_are_open_and_every_post_except_the_import_takes_a_key() {
        let probes = ["/healthz", "/readyz", "/metrics"];
        assert!(PROBES.iter().map(|route| route.path).eq(probes));
        for route in TABLE {
            let open = probes.contains(&route.path);
            assert_eq!(route.scope == Access::Open, open, "{}", route.path);
            let keyed = route.method == Method::POST && !route.path.ends_with(":import");
            assert_eq!(route.is_keyed(), keyed, "{}", route.path);
        }
    }

    #[test]
    fn no_two_routes_match_the_same_request() {
        let shape = |path: &str| -> Vec<String> {
            let parts = path.split('/');
            parts
                .map(|part| if part.starts_with('{') { "{}" } else { part }.to_owned())
                .collect()
        };
        for (n, one) in TABLE.iter().enumerate() {
            for other in &TABLE[n + 1..] {
                let differs = one.method != other.method || shape(one.path) != shape(other.path);
                assert!(differs, "{} {}", one.path, other.path);
            }
        }
    }
}
