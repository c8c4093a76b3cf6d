//! The carriers' tracking services, one file each.

mod dhl;
mod dpd;
mod fedex;
mod gls;
mod inpost;
mod poczta_polska;
mod ups;

pub(crate) use dhl::Dhl;
pub(crate) use dpd::Dpd;
pub(crate) use fedex::Fedex;
pub(crate) use gls::Gls;
pub(crate) use inpost::Inpost;
pub(crate) use poczta_polska::{PocztaLogin, PocztaPolska};
pub(crate) use ups::Ups;

use orders::Carrier;
use url::Url;

use crate::SetupError;

/// An address that can be asked over HTTP.
pub(crate) fn address(carrier: Carrier, url: &Url) -> Result<Url, SetupError> {
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_http.then(|| url.clone()).ok_or(SetupError::Address(carrier))
}

/// An address below another one, each segment percent-encoded. `base` is one that [`address`] let pass.
fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
