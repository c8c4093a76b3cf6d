//! What is asked while it soaks: of everything something, in the proportions of a day.

use std::sync::Arc;

use crate::requests::{Offers, Requests, Source, get_any};
use crate::stand::Stand;
use crate::{tokens, write};

/// Kinds of requests, each with how many of a hundred are of it.
#[derive(Debug)]
struct Mixture(Vec<(u32, Requests)>);

/// Reads, pages, keyed changes and calls for tokens of all sellers of a stand, all of which are answered 200.
pub(super) fn on(stand: &Stand) -> Requests {
    let tokens = stand.tokens();
    Arc::new(Mixture(vec![
        (50, Offers::of_all(stand.catalogue, &tokens)),
        (10, get_any("/v1/offers?limit=50", &tokens)),
        (10, get_any("/v1/me", &tokens)),
        (20, write::patches_on(stand)),
        (10, tokens::issuing_on(stand)),
    ]))
}

impl Source for Mixture {
    fn write(&self, random: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut drawn = random.u32(0..self.0.iter().map(|(share, _)| share).sum());
        for (share, requests) in &self.0 {
            if drawn < *share {
                return requests.write(random, into);
            }
            drawn -= share;
        }
        anyhow::bail!("the shares are no whole")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{any_of, get};

    #[test]
    fn every_kind_has_its_share() {
        let one = |path: &str| any_of(vec![get(path, "t")]);
        let mixture = Mixture(vec![(75, one("/often")), (25, one("/seldom"))]);
        let (mut random, mut request) = (fastrand::Rng::with_seed(1), Vec::new());
        let mut seldom = 0;
        for _ in 0..1_000 {
            mixture.write(&mut random, &mut request).unwrap();
            seldom += u32::from(request.starts_with(b"GET /seldom"));
        }
        assert!((200..300).contains(&seldom), "{seldom}");
    }
}
