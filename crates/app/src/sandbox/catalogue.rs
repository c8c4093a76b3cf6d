//! The seeded catalogues: offers in every status, with and without price and stock.

use chrono::TimeDelta;
use kernel::{Money, OfferId};
use offers::{OfferFeed, OfferStatus, Stock};

/// A seller's range of goods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Ceramics,
    Bicycles,
    Books,
}

/// An offer to be fed as if it had been fed `age` ago.
pub(super) struct Aged {
    pub(super) feed: OfferFeed,
    pub(super) age: TimeDelta,
}

/// A product: title, handle, brand, price in grosze.
type Product = (&'static str, &'static str, &'static str, i64);
/// What a product comes in: added to its title, and to its handle.
type Variant = (&'static str, &'static str);

const CERAMICS: &[Product] = &[
    ("Kubek 300 ml", "kubek-300", "Kamionka", 3_900),
    (
        "Kubek 450 ml z podwójną ścianką",
        "kubek-450-podwojny",
        "Kamionka",
        6_500,
    ),
    (
        "Filiżanka do espresso ze spodkiem",
        "filizanka-espresso",
        "Kamionka",
        4_900,
    ),
    ("Dzbanek do herbaty 1,2 l", "dzbanek-1200", "Kamionka", 18_900),
    ("Mlecznik 200 ml", "mlecznik-200", "Kamionka", 5_200),
    ("Cukiernica z pokrywką", "cukiernica", "Kamionka", 7_400),
    ("Miska śniadaniowa 16 cm", "miska-16", "Kamionka", 5_900),
    ("Miska sałatkowa 26 cm", "miska-26", "Kamionka", 13_900),
    ("Talerz deserowy 20 cm", "talerz-20", "Kamionka", 4_400),
    ("Talerz obiadowy 27 cm", "talerz-27", "Kamionka", 6_400),
    ("Talerz głęboki 23 cm", "talerz-23", "Kamionka", 6_100),
    ("Półmisek owalny 34 cm", "polmisek-34", "Kamionka", 15_900),
    ("Kokilka do zapiekania", "kokilka", "Żar i Szkliwo", 2_900),
    (
        "Naczynie do zapiekania 2 l",
        "naczynie-2000",
        "Żar i Szkliwo",
        16_900,
    ),
    (
        "Doniczka z podstawką 14 cm",
        "doniczka-14",
        "Żar i Szkliwo",
        7_900,
    ),
    ("Wazon 24 cm", "wazon-24", "Żar i Szkliwo", 11_900),
    ("Świecznik niski", "swiecznik", "Żar i Szkliwo", 3_600),
];
const GLAZES: &[Variant] = &[
    ("szkliwo białe", "biale"),
    ("szkliwo granatowe", "granatowe"),
    ("szkliwo szałwiowe", "szalwiowe"),
    ("szkliwo piaskowe", "piaskowe"),
];

const BICYCLES: &[Product] = &[
    ("Opona 28\" z wkładką", "opona-28", "Trakt", 12_900),
    ("Dętka 28\"", "detka-28", "Trakt", 2_400),
    ("Łańcuch 10-rzędowy", "lancuch-10", "Ogniwo", 9_900),
    ("Lampka przednia 60 lm", "lampka-przednia", "Ogniwo", 7_900),
    ("Siodełko żelowe", "siodelko-zelowe", "Trakt", 14_900),
    ("Pompka stacjonarna", "pompka", "Ogniwo", 11_900),
];
const SERIES: &[Variant] = &[("seria Miasto", "miasto"), ("seria Trasa", "trasa")];

const BOOKS: &[Product] = &[
    ("Atlas ptaków wędrownych", "atlas-ptakow", "", 4_500),
    ("Zielnik domowy", "zielnik", "", 3_200),
    ("Kuchnia Podlasia", "kuchnia-podlasia", "", 5_900),
    ("Mosty i wiadukty", "mosty", "", 7_000),
    ("Historia jednej kamienicy", "kamienica", "", 2_800),
    ("Podręcznik introligatora", "introligator", "", 8_800),
    ("Nocne pociągi", "nocne-pociagi", "", 2_500),
    ("Słownik gwary górskiej", "slownik-gwary", "", 6_600),
    ("Szachy dla cierpliwych", "szachy", "", 3_900),
];
const CONDITION: &[Variant] = &[("stan dobry", "dobry")];

impl Range {
    fn goods(self) -> (&'static [Product], &'static [Variant]) {
        match self {
            Self::Ceramics => (CERAMICS, GLAZES),
            Self::Bicycles => (BICYCLES, SERIES),
            Self::Books => (BOOKS, CONDITION),
        }
    }

    /// The beginning of the article numbers: country, and company.
    const fn ean_prefix(self) -> &'static str {
        match self {
            Self::Ceramics => "5901234",
            Self::Bicycles => "5904321",
            Self::Books => "9788300",
        }
    }

    /// The offers, newest first; `id` makes their ids. The first one is published, with price and stock.
    pub(super) fn offers(self, domain: &str, mut id: impl FnMut() -> OfferId) -> Vec<Aged> {
        let (products, variants) = self.goods();
        let pairs = variants
            .iter()
            .flat_map(|variant| products.iter().map(move |product| (product, variant)));
        (0..)
            .zip(pairs)
            .map(|(n, (product, variant))| Aged {
                feed: self.feed(n, product, variant, domain, id()),
                age: age(n),
            })
            .collect()
    }

    fn feed(self, n: i64, product: &Product, variant: &Variant, domain: &str, id: OfferId) -> OfferFeed {
        let (title, handle, brand, price) = *product;
        let handle = format!("{handle}-{}", variant.1);
        let ean = ean(self.ean_prefix(), n);
        let (status, priced, stocked) = state(n);
        OfferFeed {
            id,
            title: format!("{title}, {}", variant.0),
            status,
            price: Money::pln(price).ok().filter(|_| priced),
            stock: Stock::new((n * 7 + 12) % 40).ok().filter(|_| stocked),
            brand: Some(brand.to_owned()).filter(|brand| !brand.is_empty()),
            signature: Some(format!("K{:06}|{brand}|{ean}", 1_000 + n)).filter(|_| !brand.is_empty()),
            ean: Some(ean),
            thumbnail: Some(format!("https://img.{domain}/{handle}.jpg")).filter(|_| n % 9 != 8),
            url: format!("https://{domain}/p/{handle}"),
            handle,
        }
    }
}

/// Status, whether there is a price, whether there is stock (which can be none left).
fn state(n: i64) -> (OfferStatus, bool, bool) {
    match n % 12 {
        3 => (OfferStatus::Draft, false, true),
        5 => (OfferStatus::Proposed, true, false),
        7 => (OfferStatus::Rejected, true, true),
        8 => (OfferStatus::Published, false, true),
        9 => (OfferStatus::Published, true, false),
        11 => (OfferStatus::Draft, false, false),
        _ => (OfferStatus::Published, true, true),
    }
}

fn age(n: i64) -> TimeDelta {
    TimeDelta::minutes(n * 311 + 12)
}

/// An EAN-13: seven digits, five of a number, a check digit.
fn ean(prefix: &str, n: i64) -> String {
    let digits = format!("{prefix}{n:05}");
    let weighted = digits
        .bytes()
        .zip([1, 3].into_iter().cycle())
        .map(|(digit, weight)| u32::from(digit - b'0') * weight);
    let check = (10 - weighted.sum::<u32>() % 10) % 10;
    format!("{digits}{check}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;

    fn offers(range: Range) -> Vec<OfferFeed> {
        let mut id = 0;
        let next = || {
            id += 1;
            OfferId::from(Uuid::from_u128(id))
        };
        range
            .offers("shop.example", next)
            .into_iter()
            .map(|aged| aged.feed)
            .collect()
    }

    #[test]
    fn the_first_catalogue_fills_more_than_one_page() {
        assert!(offers(Range::Ceramics).len() > usize::from(kernel::PAGE_DEFAULT) + 10);
    }

    #[test]
    fn every_catalogue_has_every_status_and_offers_with_and_without_price_and_stock() {
        for range in [Range::Ceramics, Range::Bicycles, Range::Books] {
            let offers = offers(range);
            for status in OfferStatus::ALL {
                assert!(
                    offers.iter().any(|offer| offer.status == status),
                    "{range:?} {status:?}"
                );
            }
            for (price, stock) in [(true, true), (true, false), (false, true)] {
                let some = offers
                    .iter()
                    .any(|offer| (offer.price.is_some(), offer.stock.is_some()) == (price, stock));
                assert!(some, "{range:?}: price {price}, stock {stock}");
            }
            let first = &offers[0];
            assert!(first.status == OfferStatus::Published && first.price.is_some() && first.stock.is_some());
        }
        assert!(
            offers(Range::Ceramics)
                .iter()
                .any(|offer| offer.price.is_none() && offer.stock.is_none())
        );
    }

    #[test]
    fn every_offer_keeps_the_rules_of_the_feed() {
        for offer in [Range::Ceramics, Range::Bicycles, Range::Books]
            .into_iter()
            .flat_map(offers)
        {
            assert!(offers::title(offer.title.clone()).is_ok(), "{}", offer.title);
            assert!(offers::handle(offer.handle.clone()).is_ok(), "{}", offer.handle);
            assert!(offers::web_address(offer.url.clone()).is_ok(), "{}", offer.url);
        }
    }

    #[test]
    fn handles_and_article_numbers_are_unique() {
        let all = offers(Range::Ceramics);
        let handles = all.iter().map(|offer| &offer.handle).collect::<BTreeSet<_>>();
        let eans = all.iter().map(|offer| &offer.ean).collect::<BTreeSet<_>>();
        assert_eq!((handles.len(), eans.len()), (all.len(), all.len()));
        assert!(all.windows(2).zip(0..).all(|(_, n)| age(n) < age(n + 1)));
    }

    #[test]
    fn a_known_article_number_has_its_check_digit() {
        assert_eq!(ean("5901234", 12345), "5901234123457");
    }
}
