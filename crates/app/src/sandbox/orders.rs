//! The seeded orders: some in every status, one of several sellers, one that only tries things out. People and streets are
//! made up, addresses lie under `example` (RFC 2606).

use chrono::TimeDelta;
use orders::{Buyer, Carrier, OrderNumber, ShippingAddress};

/// How far an order has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Placed,
    CalledOff,
    Paid,
    PaidAndCalledOff,
    /// The parcel is on its way.
    Shipped,
    Delivered,
}

/// What is special about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ordinary,
    /// It holds items of the next seller too.
    TwoSellers,
    /// It only tries things out.
    Test,
}

/// An order to be seeded as if it had been placed `age` ago.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderPlan {
    /// Where the seller stands among those that are seeded.
    pub(super) seller: usize,
    /// Which of the seller's orders it is, from 0; the oldest first.
    pub(super) n: usize,
    pub(super) age: TimeDelta,
    pub(super) stage: Stage,
    pub(super) kind: Kind,
}

/// Ordinary orders of the first seller, oldest first.
const MANY: [Stage; 30] = {
    use Stage::{CalledOff, Delivered, Paid, PaidAndCalledOff, Placed, Shipped};
    [
        Delivered,
        Delivered,
        Delivered,
        Delivered,
        PaidAndCalledOff,
        Delivered,
        Delivered,
        Delivered,
        CalledOff,
        Delivered,
        Delivered,
        Delivered,
        Shipped,
        Shipped,
        Delivered,
        CalledOff,
        Shipped,
        Shipped,
        Shipped,
        Paid,
        Shipped,
        Paid,
        PaidAndCalledOff,
        Paid,
        Paid,
        Placed,
        Paid,
        Paid,
        Placed,
        Placed,
    ]
};
/// Those of each other seller.
const FEW: [Stage; 5] = [
    Stage::Delivered,
    Stage::Shipped,
    Stage::CalledOff,
    Stage::Paid,
    Stage::Placed,
];
/// What comes after the first seller's ordinary ones.
const SPECIAL: [Kind; 2] = [Kind::TwoSellers, Kind::Test];

/// The orders, each seller's oldest first. Those of the first seller reach back twelve days, the others' a day.
pub(super) fn plans(sellers: usize) -> Vec<OrderPlan> {
    let many = (0..).zip(MANY).map(|(n, stage)| OrderPlan {
        seller: 0,
        n,
        age: age(MANY.len() - n, 9 * 60 + 23),
        stage,
        kind: Kind::Ordinary,
    });
    let special = (MANY.len()..).zip(SPECIAL).map(|(n, kind)| OrderPlan {
        seller: 0,
        n,
        age: age(MANY.len() + SPECIAL.len() - n, 41),
        stage: Stage::Paid,
        kind,
    });
    let few = (1..sellers).flat_map(|seller| {
        (0..).zip(FEW).map(move |(n, stage)| OrderPlan {
            seller,
            n,
            age: age(FEW.len() - n, 5 * 60 + 17),
            stage,
            kind: Kind::Ordinary,
        })
    });
    many.chain(special).chain(few).collect()
}

/// `steps` of so many minutes, and some more.
fn age(steps: usize, minutes: i64) -> TimeDelta {
    TimeDelta::minutes(i64::try_from(steps).unwrap_or_default() * minutes + 7)
}

impl OrderPlan {
    /// The number of the order at the seller with this number.
    pub(super) fn number(&self, seller_no: i32) -> OrderNumber {
        OrderNumber::from_trusted(format!("ZAM-{seller_no}-{}", 1_001 + self.n))
    }

    /// How many different offers are in it.
    pub(super) const fn lines(&self) -> usize {
        1 + self.n % 3
    }

    /// How many pieces of the offer at this place.
    pub(super) fn quantity(&self, place: usize) -> i32 {
        i32::from((self.n + place).is_multiple_of(4)) + 1
    }

    /// How the buyer pays, and wants it delivered.
    pub(super) const fn methods(&self) -> (&'static str, &'static str) {
        match self.n % 3 {
            0 => ("blik", "courier"),
            1 => ("card", "parcel_locker"),
            _ => ("transfer", "courier"),
        }
    }

    /// Who carries it, by which number, and whether the carrier has said yet that it is on its way.
    pub(super) fn parcel(&self) -> (Carrier, String, bool) {
        let carriers = Carrier::ALL;
        let carrier = carriers
            .get(self.n % carriers.len())
            .copied()
            .unwrap_or(Carrier::Other);
        let digits = 6_280_000_000_u64 + u64::try_from(self.n).unwrap_or_default() * 7_919;
        // The sandbox's carriers know numbers with this word as on their way, for as long as anybody asks.
        let is_known = self.stage == Stage::Shipped && self.n.is_multiple_of(2) && carrier != Carrier::Other;
        let number = if is_known {
            format!("TRANSIT{digits}")
        } else {
            format!("{digits}")
        };
        (carrier, number, is_known)
    }

    pub(super) fn buyer(&self) -> Buyer {
        let (name, mailbox) = BUYERS.get(self.n % BUYERS.len()).copied().unwrap_or_default();
        Buyer {
            name: Some(name.to_owned()),
            email: Some(format!("{mailbox}@poczta.example")),
            phone: Some(format!("+48 500 000 {:03}", self.n)),
        }
    }

    pub(super) fn address(&self) -> ShippingAddress {
        let (street, code, city) = ADDRESSES
            .get(self.n % ADDRESSES.len())
            .copied()
            .unwrap_or_default();
        ShippingAddress {
            line1: Some(format!("{street} {}", 3 + self.n)),
            line2: Some(format!("m. {}", 1 + self.n)).filter(|_| self.n.is_multiple_of(3)),
            postal_code: Some(code.to_owned()),
            city: Some(city.to_owned()),
            country: "PL".to_owned(),
        }
    }
}

const BUYERS: [(&str, &str); 8] = [
    ("Anna Wiśniewska", "anna.wisniewska"),
    ("Piotr Zieliński", "p.zielinski"),
    ("Maria Lewandowska", "maria.lewandowska"),
    ("Tomasz Wójcik", "tomasz.wojcik"),
    ("Katarzyna Kamińska", "k.kaminska"),
    ("Jan Szymański", "jan.szymanski"),
    ("Zofia Dąbrowska", "zofia.dabrowska"),
    ("Marek Kozłowski", "marek.kozlowski"),
];
const ADDRESSES: [(&str, &str, &str); 7] = [
    ("ul. Lipowa", "00-950", "Warszawa"),
    ("ul. Ogrodowa", "30-962", "Kraków"),
    ("ul. Słoneczna", "50-950", "Wrocław"),
    ("os. Kwiatowe", "60-967", "Poznań"),
    ("ul. Portowa", "80-958", "Gdańsk"),
    ("al. Klonowa", "90-950", "Łódź"),
    ("ul. Młyńska", "40-950", "Katowice"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use orders::TrackingNumber;

    use super::*;

    const ALL: [Stage; 6] = [
        Stage::Placed,
        Stage::CalledOff,
        Stage::Paid,
        Stage::PaidAndCalledOff,
        Stage::Shipped,
        Stage::Delivered,
    ];

    #[test]
    fn the_first_seller_has_orders_at_every_stage_and_enough_to_page() {
        let plans = plans(3);
        let listed = plans
            .iter()
            .filter(|plan| plan.seller == 0 && plan.kind != Kind::Test);
        assert!(listed.count() > 25);
        for stage in ALL {
            assert!(
                plans.iter().any(|plan| plan.seller == 0 && plan.stage == stage),
                "{stage:?}"
            );
        }
        for kind in SPECIAL {
            let special = plans.iter().filter(|plan| plan.kind == kind).collect::<Vec<_>>();
            assert!(matches!(special[..], [plan] if plan.seller == 0 && plan.stage == Stage::Paid));
        }
        for seller in 1..3 {
            assert!(
                plans
                    .iter()
                    .any(|plan| plan.seller == seller && plan.stage == Stage::Paid)
            );
        }
    }

    #[test]
    fn numbers_are_orders_numbers_each_its_own_and_rise_with_time() {
        let plans = plans(3);
        let numbers = plans.iter().map(|plan| {
            let number = plan
                .number(i32::try_from(plan.seller).unwrap())
                .as_str()
                .to_owned();
            assert!(OrderNumber::new(number.clone()).is_ok(), "{number}");
            number
        });
        assert_eq!(numbers.collect::<BTreeSet<_>>().len(), plans.len());
        let first = plans.iter().filter(|plan| plan.seller == 0).collect::<Vec<_>>();
        assert!(first.windows(2).all(|two| two[0].age > two[1].age));
    }

    #[test]
    fn parcels_have_numbers_and_only_those_on_their_way_are_known_to_carriers() {
        for plan in plans(3) {
            let (_, number, is_known) = plan.parcel();
            assert_eq!(number.contains("TRANSIT"), is_known);
            assert!(TrackingNumber::new(number).is_ok());
        }
    }
}
