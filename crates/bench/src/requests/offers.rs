//! Reading random offers.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Context as _;

use super::{Requests, Source, Template, get};
use crate::catalogue::{self, Catalogue};

/// `GET /v1/offers/{id}` with a random id of a range of offers and its seller's token.
#[derive(Debug)]
pub(crate) struct Offers {
    /// Whose which offer is.
    catalogue: Catalogue,
    /// The offers that are asked for.
    range: Range<u64>,
    /// One for each seller.
    templates: Vec<Template>,
}

impl Offers {
    /// Random offers of all sellers, each asked for with its seller's token (`tokens` in the sellers' order).
    pub(crate) fn of_all(catalogue: Catalogue, tokens: &[&str]) -> Requests {
        Arc::new(Self {
            catalogue,
            range: 0..catalogue.offers,
            templates: tokens.iter().map(|token| template(token)).collect(),
        })
    }

    /// Random offers of the first seller alone, all asked for with its one token.
    pub(crate) fn of_first_seller(catalogue: Catalogue, token: &str) -> Requests {
        Arc::new(Self {
            catalogue,
            range: catalogue.of_seller(0),
            templates: vec![template(token)],
        })
    }
}

fn template(token: &str) -> Template {
    Template::new(get(&format!("/v1/offers/{}", catalogue::offer_id_hole()), token))
}

impl Source for Offers {
    fn write(&self, random: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let offer = random.u64(self.range.clone());
        let seller = usize::try_from(self.catalogue.seller_of(offer))?;
        let template = self.templates.get(seller).context("a seller has no token")?;
        template.write(&[offer], into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_asked_for_with_its_sellers_token() {
        let catalogue = Catalogue::new(100, 3);
        let requests = Offers::of_all(catalogue, &["t0", "t1", "t2"]);
        let mut random = fastrand::Rng::with_seed(1);
        let mut request = Vec::new();
        for _ in 0..200 {
            requests.write(&mut random, &mut request).unwrap();
            let text = String::from_utf8(request.clone()).unwrap();
            let id = text
                .strip_prefix("GET /v1/offers/")
                .and_then(|rest| rest.split_once(' '))
                .unwrap()
                .0;
            let offer = (0..100).find(|offer| catalogue::offer_id(*offer) == id).unwrap();
            let bearer = format!("Authorization: Bearer t{}\r\n", catalogue.seller_of(offer));
            assert!(text.contains(&bearer), "{text}");
        }
    }
}
