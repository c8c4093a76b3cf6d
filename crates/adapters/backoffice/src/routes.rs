//! All operations of the back office, one line for each.

use web::route::Route;

use crate::BackOffice;
use crate::applications::{
    AcceptApplication, AdjustApplication, DeleteApplication, ListApplications, ReadApplication,
    RegisterApplication, ReinstateApplication, SuspendApplication,
};
use crate::changes::ListChanges;
use crate::health::{Healthz, Metrics, Readyz};
use crate::import::ImportOffers;
use crate::offers::{ModerateOffer, PriceOffer, PutOffer, ReadOffer};
use crate::orders::{CancelOrder, DeliverOrder, EraseBuyer, PayOrder, PlaceOrder, ReadOrder, ShipOrder};
use crate::personal_tokens::{IssueToken, RevokeToken};
use crate::policy::Access;
use crate::sellers::{CloseSeller, CreateSeller, InviteSeller, ListSellers, MakeSignInLink, ReadSeller};

/// The operations of a process that runs only workers.
pub(crate) static PROBES: &[Route<BackOffice>] = &[
    Route::read::<Healthz>(),
    Route::read::<Readyz>(),
    Route::read::<Metrics>(),
];

/// Every operation.
pub(crate) static TABLE: &[Route<BackOffice>] = &[
    Route::read::<Healthz>(),
    Route::read::<Readyz>(),
    Route::read::<Metrics>(),
    Route::write::<CreateSeller>(),
    Route::read::<ListSellers>(),
    Route::read::<ReadSeller>(),
    Route::write::<CloseSeller>(),
    Route::write::<InviteSeller>(),
    Route::write::<MakeSignInLink>(),
    Route::write::<PutOffer>(),
    Route::read::<ReadOffer>(),
    Route::write::<ModerateOffer>(),
    Route::write::<PriceOffer>(),
    Route::stream::<ImportOffers>(),
    Route::write::<RegisterApplication>(),
    Route::read::<ListApplications>(),
    Route::write::<IssueToken>(),
    Route::write::<RevokeToken>(),
    Route::read::<ReadApplication>(),
    Route::write::<AdjustApplication>(),
    Route::write::<DeleteApplication>(),
    Route::write::<AcceptApplication>(),
    Route::write::<SuspendApplication>(),
    Route::write::<ReinstateApplication>(),
    Route::write::<PlaceOrder>(),
    Route::read::<ReadOrder>(),
    Route::write::<PayOrder>(),
    Route::write::<CancelOrder>(),
    Route::write::<DeliverOrder>(),
    Route::write::<ShipOrder>(),
    Route::write::<EraseBuyer>(),
    Route::read::<ListChanges>(),
];

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
        for route in TABLE {
            let open = ["/healthz", "/readyz", "/metrics"].contains(&route.path);
            assert_eq!(route.scope == Access::Open, open, "{route:?}");
            let keyed = route.method == actix_web::http::Method::POST && !route.path.ends_with(":import");
            assert_eq!(route.is_keyed(), keyed, "{route:?}");
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
                assert!(
                    one.method != other.method || shape(one.path) != shape(other.path),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
