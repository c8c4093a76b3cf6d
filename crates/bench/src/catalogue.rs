//! The offers that a bench feeds: how many, whose, and what each looks like. All follows from an offer's number, so that
//! the load generator and `pgbench` can name any offer without asking the database.

use std::io::Write as _;
use std::ops::Range;

/// The share of all offers that the first seller holds: one in so many.
const LARGEST_SHARE: u64 = 5;
/// The first 16 of the 32 hexadecimal digits of every offer's id: a UUIDv7 of one fixed instant.
pub(crate) const ID_HIGH: &str = "0197000000007000";
/// The other 16 digits, as a decimal number, are this plus the offer's number; its first digit is the UUID's variant.
pub(crate) const ID_LOW: u64 = 8_000_000_000_000_000;

/// Offers numbered from 0, dealt to sellers numbered from 0: the first holds a fifth, the others equal parts of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    /// How many offers there are, at least one for each seller.
    pub(crate) offers: u64,
    /// How many sellers there are, at least two.
    pub(crate) sellers: u64,
}

impl Catalogue {
    /// `offers` of at most `sellers` sellers; both are raised to what makes sense.
    pub(crate) fn new(offers: u64, sellers: u64) -> Self {
        let sellers = sellers.max(2);
        let offers = offers.max(sellers * LARGEST_SHARE);
        Self { offers, sellers }
    }

    /// How many offers the first seller has.
    pub(crate) fn largest(&self) -> u64 {
        self.offers / LARGEST_SHARE
    }

    /// How many offers each other seller has; the last ones may have fewer.
    pub(crate) fn part(&self) -> u64 {
        (self.offers - self.largest()).div_ceil(self.sellers - 1)
    }

    /// The numbers of a seller's offers.
    pub(crate) fn of_seller(&self, seller: u64) -> Range<u64> {
        if seller == 0 {
            return 0..self.largest();
        }
        let start = self.largest() + (seller - 1) * self.part();
        start.min(self.offers)..(start + self.part()).min(self.offers)
    }

    /// Whose an offer is, as an expression of pgbench's that gives the seller's number from the offer's.
    pub(crate) fn seller_expression(&self, offer: &str) -> String {
        let (largest, part) = (self.largest(), self.part());
        format!("case when {offer} < {largest} then 0 else 1 + ({offer} - {largest}) / {part} end")
    }

    /// Whose an offer is.
    pub(crate) fn seller_of(&self, offer: u64) -> u64 {
        match offer.checked_sub(self.largest()) {
            None => 0,
            Some(rest) => 1 + rest / self.part(),
        }
    }
}

/// An offer's id in its canonical form.
pub(crate) fn offer_id(offer: u64) -> String {
    canonical(ID_HIGH, &(ID_LOW + offer).to_string())
}

/// The same with a hole of 12 digits for the offer's number; see [`crate::requests::Template`].
pub(crate) fn offer_id_hole() -> String {
    hole(ID_HIGH)
}

/// An id with the digits `high` whose number is left open.
pub(crate) fn hole(high: &str) -> String {
    canonical(high, "8000############")
}

/// An id of its two halves, 16 digits each.
pub(crate) fn canonical(high: &str, low: &str) -> String {
    let (high_1, rest) = high.split_at(8);
    let (high_2, high_3) = rest.split_at(4);
    let (low_1, low_2) = low.split_at(4);
    format!("{high_1}-{high_2}-{high_3}-{low_1}-{low_2}")
}

/// Appends an offer as one line of the import's NDJSON, about 430 bytes.
pub(crate) fn write_line(offer: u64, into: &mut Vec<u8>) {
    let id = offer_id(offer);
    let status = if offer.is_multiple_of(10) {
        "draft"
    } else {
        "published"
    };
    let amount = 499 + offer * 37 % 250_000;
    let stock = offer * 7 % 120;
    let ean = 5_900_000_000_000 + offer;
    let brand = BRANDS.iter().cycle().nth(index(offer)).unwrap_or(&"Acme");
    // Writing into a vector does not fail.
    let _ = writeln!(
        into,
        concat!(
            r#"{{"id":"{id}","title":"{brand} cordless drill 18 V, set number {offer}","handle":"cordless-drill-{offer}","#,
            r#""status":"{status}","price":{{"amount":{amount},"currency":"PLN"}},"stock":{stock},"ean":"{ean}","#,
            r#""brand":"{brand}","signature":"C{offer}|{brand}|{ean}","#,
            r#""thumbnail":"https://img.shop.example/t/{offer}/160.webp","#,
            r#""url":"https://shop.example/p/cordless-drill-{offer}"}}"#
        ),
        id = id,
        brand = brand,
        offer = offer,
        status = status,
        amount = amount,
        stock = stock,
        ean = ean,
    );
}

const BRANDS: [&str; 5] = ["Acme", "Bolt", "Żubr", "Kowal", "Nord & Co"];

fn index(offer: u64) -> usize {
    usize::try_from(offer % 5).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offer_belongs_to_the_seller_whose_range_holds_it() {
        for catalogue in [
            Catalogue::new(0, 0),
            Catalogue::new(10_000, 100),
            Catalogue::new(1_003, 7),
        ] {
            let mut next = 0;
            for seller in 0..catalogue.sellers {
                for offer in catalogue.of_seller(seller) {
                    assert_eq!(offer, next);
                    assert_eq!(catalogue.seller_of(offer), seller);
                    next += 1;
                }
            }
            assert_eq!(next, catalogue.offers);
        }
    }

    #[test]
    fn ids_are_canonical_and_made_of_two_halves() {
        assert_eq!(offer_id(123), "01970000-0000-7000-8000-000000000123");
        assert_eq!(offer_id(0).len(), 36);
        assert_eq!(offer_id_hole(), "01970000-0000-7000-8000-############");
        assert_eq!(offer_id(7).replace('-', ""), format!("{ID_HIGH}{}", ID_LOW + 7));
    }

    #[test]
    fn a_line_is_json() {
        let mut line = Vec::new();
        write_line(14, &mut line);
        assert_eq!(line.last(), Some(&b'\n'));
        let offer: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(offer["id"], offer_id(14));
        assert_eq!(offer["brand"], "Nord & Co");
        assert_eq!(offer["price"]["currency"], "PLN");
    }
}
