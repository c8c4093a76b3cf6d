//! What is seeded: sellers with their applications. Names are made up, addresses lie under `example` (RFC 2606).

use oauth::{ClientType, Purpose, Scope};
use usecases::manage_application::Move;

use super::catalogue::Range;

/// A seller to be seeded.
pub(super) struct SellerPlan {
    pub(super) name: &'static str,
    /// The part of the address before the `@`.
    pub(super) mailbox: &'static str,
    pub(super) domain: &'static str,
    /// The first one is for own use.
    pub(super) applications: &'static [ApplicationPlan],
    pub(super) offers: Range,
}

/// An application to be seeded.
pub(super) struct ApplicationPlan {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) domain: &'static str,
    pub(super) purpose: Purpose,
    pub(super) client_type: ClientType,
    pub(super) scopes: &'static [Scope],
    /// What the operator does after the registration.
    pub(super) moves: &'static [Move],
}

/// The sellers, in the order of their numbers.
pub(super) const SELLERS: [SellerPlan; 3] = [
    SellerPlan {
        name: "Kamionka Ceramika",
        mailbox: "sklep",
        domain: "kamionka.example",
        applications: &[
            ApplicationPlan {
                name: "Kamionka Stock Sync",
                description: "Keeps prices and stock in step with the warehouse.",
                domain: "sync.kamionka.example",
                purpose: Purpose::OwnUse,
                client_type: ClientType::Confidential,
                scopes: Scope::ALL,
                moves: &[],
            },
            ApplicationPlan {
                name: "Parcel Bridge",
                description: "Prints labels and reports shipments for many shops.",
                domain: "parcel-bridge.example",
                purpose: Purpose::ForOtherSellers,
                client_type: ClientType::Confidential,
                scopes: &Scope::IN_USE,
                moves: &[Move::Accept],
            },
            ApplicationPlan {
                name: "Price Radar",
                description: "Follows the market and proposes prices.",
                domain: "price-radar.example",
                purpose: Purpose::ForOtherSellers,
                client_type: ClientType::Confidential,
                scopes: &[Scope::OffersRead, Scope::OffersWrite],
                moves: &[],
            },
            ApplicationPlan {
                name: "Review Harvest",
                description: "Asks buyers for their opinion.",
                domain: "review-harvest.example",
                purpose: Purpose::ForOtherSellers,
                client_type: ClientType::Confidential,
                scopes: &[Scope::OrdersRead],
                moves: &[Move::Accept, Move::Suspend],
            },
            ApplicationPlan {
                name: "Pocket Stall",
                description: "Shows orders and stock on a telephone; it can keep no secret.",
                domain: "pocket-stall.example",
                purpose: Purpose::ForOtherSellers,
                client_type: ClientType::Public,
                scopes: &[Scope::OffersRead, Scope::OffersWrite, Scope::OrdersRead],
                moves: &[Move::Accept],
            },
        ],
        offers: Range::Ceramics,
    },
    SellerPlan {
        name: "Rowerownia Bielska",
        mailbox: "biuro",
        domain: "rowerownia.example",
        applications: &[ApplicationPlan {
            name: "Rowerownia Magazyn",
            description: "The shop's own warehouse program.",
            domain: "magazyn.rowerownia.example",
            purpose: Purpose::OwnUse,
            client_type: ClientType::Confidential,
            scopes: &Scope::IN_USE,
            moves: &[],
        }],
        offers: Range::Bicycles,
    },
    SellerPlan {
        name: "Antykwariat Pod Sową",
        mailbox: "kontakt",
        domain: "pod-sowa.example",
        applications: &[ApplicationPlan {
            name: "Pod Sowa Katalog",
            description: "The second-hand bookshop's catalogue.",
            domain: "katalog.pod-sowa.example",
            purpose: Purpose::OwnUse,
            client_type: ClientType::Confidential,
            scopes: &Scope::IN_USE,
            moves: &[],
        }],
        offers: Range::Books,
    },
];

#[cfg(test)]
mod tests {
    use oauth::{ApplicationStatus, application_name};

    use super::*;

    fn status(plan: &ApplicationPlan) -> ApplicationStatus {
        let first = plan.purpose.first_status();
        plan.moves.iter().fold(first, |status, step| match step {
            Move::Accept => status.accept().unwrap(),
            Move::Suspend => status.suspend().unwrap(),
            Move::Reinstate => status.reinstate().unwrap(),
        })
    }

    #[test]
    fn every_seller_has_an_application_of_its_own_and_the_first_one_has_all_kinds() {
        for seller in &SELLERS {
            let own = &seller.applications[0];
            assert_eq!(own.purpose, Purpose::OwnUse, "{}", own.name);
            assert!(
                Scope::IN_USE.iter().all(|scope| own.scopes.contains(scope)),
                "{}",
                own.name
            );
        }
        let first = SELLERS[0].applications;
        assert_eq!(first[0].scopes.len(), 17);
        let others = first[1..].iter().map(status).collect::<Vec<_>>();
        assert_eq!(
            others,
            [
                ApplicationStatus::Active,
                ApplicationStatus::Pending,
                ApplicationStatus::Suspended,
                ApplicationStatus::Active,
            ]
        );
        assert_eq!(
            first.last().map(|plan| plan.client_type),
            Some(ClientType::Public)
        );
    }

    #[test]
    fn names_leave_room_for_a_number() {
        for plan in SELLERS.iter().flat_map(|seller| seller.applications) {
            assert!(
                application_name(format!("{} 99999", plan.name)).is_ok(),
                "{}",
                plan.name
            );
        }
    }
}
