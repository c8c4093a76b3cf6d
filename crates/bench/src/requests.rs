//! The requests of a load, prepared so that making one costs next to nothing.

use std::ops::Range;
use std::sync::Arc;

use crate::catalogue::{self, Catalogue, ID_LENGTH};

/// What connections send; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Requests {
    /// `GET /v1/offers/{id}` with a random id of a range of offers and its seller's token.
    Offers {
        /// Whose which offer is.
        catalogue: Catalogue,
        /// The offers that are asked for.
        range: Range<u64>,
        /// One for each seller.
        templates: Arc<[Template]>,
    },
    /// One of several whole requests, at random.
    AnyOf(Arc<[Vec<u8>]>),
}

impl Requests {
    /// Random offers of all sellers, each asked for with its seller's token (`tokens` in the sellers' order).
    pub(crate) fn all_offers(catalogue: Catalogue, tokens: &[&str]) -> Self {
        let range = 0..catalogue.offers;
        let templates = tokens.iter().map(|token| Template::new(token)).collect();
        Self::Offers {
            catalogue,
            range,
            templates,
        }
    }

    /// Random offers of the first seller alone, all asked for with its one token.
    pub(crate) fn first_sellers_offers(catalogue: Catalogue, token: &str) -> Self {
        let range = catalogue.of_seller(0);
        let templates = Arc::new([Template::new(token)]);
        Self::Offers {
            catalogue,
            range,
            templates,
        }
    }

    /// `GET path` with any of the tokens.
    pub(crate) fn get(path: &str, tokens: &[&str]) -> Self {
        Self::any_of(tokens.iter().map(|token| get(path, token)).collect())
    }

    /// One of `requests`, at random.
    pub(crate) fn any_of(requests: Vec<Vec<u8>>) -> Self {
        Self::AnyOf(requests.into())
    }

    /// Makes the next request in place of what `into` holds.
    pub(crate) fn write(&self, random: &mut fastrand::Rng, into: &mut Vec<u8>) {
        into.clear();
        match self {
            Self::Offers {
                catalogue,
                range,
                templates,
            } => {
                let offer = random.u64(range.clone());
                let seller = usize::try_from(catalogue.seller_of(offer)).ok();
                if let Some(template) = seller.and_then(|seller| templates.get(seller)) {
                    template.write(offer, into);
                }
            }
            Self::AnyOf(requests) => {
                let choice = random.usize(0..requests.len());
                into.extend_from_slice(requests.get(choice).map_or(&[], Vec::as_slice));
            }
        }
    }
}

/// A request for an offer with everything but the id's changing digits.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    request: Vec<u8>,
    id: Range<usize>,
}

impl Template {
    fn new(token: &str) -> Self {
        let request = get(&format!("/v1/offers/{}", catalogue::offer_id(0)), token);
        let start = b"GET /v1/offers/".len();
        Self {
            request,
            id: start..start + ID_LENGTH,
        }
    }

    fn write(&self, offer: u64, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.request);
        let digits = into.get_mut(self.id.clone()).unwrap_or_default().iter_mut().rev();
        let mut left = offer;
        // The last 12 characters of an id are the offer's number; see the catalogue.
        for digit in digits.take(12) {
            *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
        }
    }
}

/// A whole GET request.
pub(crate) fn get(path: &str, token: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json\r\n\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_asked_for_with_its_sellers_token() {
        let catalogue = Catalogue::new(100, 3);
        let requests = Requests::all_offers(catalogue, &["t0", "t1", "t2"]);
        let mut random = fastrand::Rng::with_seed(1);
        let mut request = Vec::new();
        for _ in 0..200 {
            requests.write(&mut random, &mut request);
            let text = String::from_utf8(request.clone()).unwrap();
            let id = text
                .strip_prefix("GET /v1/offers/")
                .unwrap()
                .get(..ID_LENGTH)
                .unwrap();
            let offer = (0..100).find(|offer| catalogue::offer_id(*offer) == id).unwrap();
            let bearer = format!("Authorization: Bearer t{}\r\n", catalogue.seller_of(offer));
            assert!(text.contains(&bearer), "{text}");
        }
    }

    #[test]
    fn one_of_several_is_chosen() {
        let requests = Requests::get("/v1/me", &["a", "b"]);
        let mut seen = std::collections::BTreeSet::new();
        let mut request = Vec::new();
        for seed in 0..50 {
            requests.write(&mut fastrand::Rng::with_seed(seed), &mut request);
            seen.insert(request.clone());
        }
        assert_eq!(seen, [get("/v1/me", "a"), get("/v1/me", "b")].into());
    }
}
