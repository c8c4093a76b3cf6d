//! The code tables, as the carriers document them.

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::{
    Carrier::{self, Dhl, Dpd, Fedex, Gls, Inpost, PocztaPolska, Ups},
    Sighting,
    TrackingStatus::{
        self, Cancelled, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered,
        Returned, Returning, Unknown,
    },
};

use crate::{
    fixtures,
    world::{self, CARRIERS, World, at, found},
};

/// Codes of one carrier with the same meaning; at least one for each wildcard.
const CELLS: &[(Carrier, TrackingStatus, &str)] = &[
    (
        Inpost,
        Registered,
        "created offers_prepared offer_selected confirmed",
    ),
    (
        Inpost,
        InTransit,
        "dispatched_by_sender dispatched_by_sender_to_pok collected_from_sender taken_by_courier \
         taken_by_courier_from_pok adopted_at_source_branch adopted_at_sorting_center \
         sent_from_source_branch unstack_from_box_machine redirect_to_box readdressed",
    ),
    (
        Inpost,
        OutForDelivery,
        "out_for_delivery out_for_delivery_to_address",
    ),
    (
        Inpost,
        ReadyForPickup,
        "ready_to_pickup ready_to_pickup_from_pok pickup_reminder_sent stack_in_box_machine \
         courier_avizo_in_customer_service_point",
    ),
    (Inpost, Delivered, "delivered"),
    (
        Inpost,
        Exception,
        "undelivered undelivered_wrong_address rejected_by_receiver pickup_time_expired \
         stack_parcel_pickup_time_expired avizo delay_in_delivery missing oversized claimed",
    ),
    (Inpost, Returned, "returned_to_sender"),
    (Inpost, Cancelled, "canceled"),
    (Dhl, Registered, "pre-transit"),
    (Dhl, InTransit, "transit"),
    (Dhl, Delivered, "delivered"),
    (Dhl, Exception, "failure"),
    (Dhl, Unknown, "unknown"),
    (PocztaPolska, Registered, "P_REJ_KN1"),
    (
        PocztaPolska,
        InTransit,
        "P_NAD P_PZL P_WZL P_WEPL P_WEOC P_WYPL P_WYOC P_ZWC",
    ),
    (PocztaPolska, OutForDelivery, "P_WD P_WDML"),
    (PocztaPolska, ReadyForPickup, "P_A P_PA P_KWD"),
    (PocztaPolska, Delivered, "P_D P_OWU"),
    (PocztaPolska, Exception, "P_ND P_NDPD P_NDPJ P_NDZAP P_R"),
    (PocztaPolska, Returning, "P_NDZ"),
    (Dpd, Registered, "030103 040200 040501 040605"),
    (
        Dpd,
        InTransit,
        "040101 050101 110101 120100 150101 160101 500500 230402",
    ),
    (Dpd, OutForDelivery, "170101"),
    (Dpd, Delivered, "190101 190102 190201"),
    (Dpd, Exception, "200101 209999"),
    (Dpd, Returning, "230403 230408"),
    (Gls, Registered, "PREADVICE PLANNEDPICKUP INPICKUP"),
    (Gls, InTransit, "INTRANSIT INWAREHOUSE"),
    (Gls, OutForDelivery, "INDELIVERY"),
    (Gls, ReadyForPickup, "DELIVEREDPS"),
    (Gls, Delivered, "DELIVERED"),
    (Gls, Exception, "NOTDELIVERED NOTPICKEDUP"),
    (Gls, Cancelled, "CANCELED"),
    (Ups, Registered, "003 079 080 157"),
    (Ups, InTransit, "005 010 025 038 039 160"),
    (Ups, OutForDelivery, "006 021 037 072 089 091 146 162"),
    (Ups, ReadyForPickup, "017 040 144 161"),
    (Ups, Delivered, "011 11 026"),
    (Ups, Exception, "013 022 023 024 046 059 060 061 062 064 069 145"),
    (Ups, Returning, "035 036"),
    (Ups, Returned, "034 067"),
    (Ups, Cancelled, "007"),
    (Fedex, Registered, "OC EP OX"),
    (Fedex, InTransit, "PU IT IX AR DP AF FD CC"),
    (Fedex, OutForDelivery, "OD ED"),
    (Fedex, ReadyForPickup, "HL HP"),
    (Fedex, Delivered, "DL"),
    (Fedex, Exception, "DE SE DD CD"),
    (Fedex, Returning, "RS"),
    (Fedex, Cancelled, "CA"),
];

/// Near misses of listed codes, and words in no table.
const UNLISTED: &[(Carrier, &[&str])] = &[
    (
        Inpost,
        &[
            "Delivered",
            "delivered ",
            "taken",
            "return_pickup_confirmation_to_sender",
            "avizo2",
        ],
    ),
    (Dhl, &["Delivered", "pretransit", ""]),
    (PocztaPolska, &["P_DOR", "p_d", "P_D ", "P_ZDJ"]),
    (Dpd, &["190301", "30103", "90101", "170102", "230401", "500501"]),
    (Gls, &["delivered", "DELIVERED_PS", "INTRANSIT2"]),
    (Ups, &["999", "000", "011a", "1100"]),
    (Fedex, &["dl", "DLX", "XX"]),
];

#[tokio::test]
async fn every_code_of_the_table_has_its_status() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let carrier = world.carrier;
        let cells = CELLS.iter().filter(|(of, ..)| *of == carrier);
        for (status, code) in
            cells.flat_map(|(_, status, codes)| codes.split_whitespace().map(move |code| (*status, code)))
        {
            let expected = Sighting {
                status,
                at: Some(at("2026-01-05T11:30:00Z")),
                raw_code: code.to_owned(),
            };
            let sighting = found(world.hears(fixtures::parcel(carrier, code)).await);
            assert_eq!(sighting, expected, "{carrier:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_unlisted_code_is_unknown() {
    join_all(UNLISTED.iter().map(async |(carrier, codes)| {
        let world = World::new(*carrier).await;
        for code in *codes {
            let sighting = found(world.hears(fixtures::parcel(*carrier, code)).await);
            assert_eq!(
                (sighting.status, &*sighting.raw_code),
                (Unknown, *code),
                "{carrier:?}"
            );
        }
    }))
    .await;
}

#[tokio::test]
async fn a_long_code_is_cut() {
    let world = World::new(Gls).await;
    let sighting = found(world.hears(fixtures::parcel(Gls, &"Ż".repeat(100_000))).await);
    assert_eq!((sighting.status, sighting.raw_code), (Unknown, "Ż".repeat(64)));
}
