//! The code tables, as the carriers document them.

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::{
    Carrier::{self, Dhl, Dpd, Fedex, Gls, Inpost, PocztaPolska, Ups},
    Sighting,
    TrackingStatus::{self, Unknown},
};

use crate::{
    fixtures,
    world::{self, CARRIERS, World, at, found},
};

/// A carrier, a status, and codes with this status; at least one code for each wildcard.
const CELLS: &str = "\
inpost registered created offers_prepared offer_selected confirmed
inpost in_transit dispatched_by_sender dispatched_by_sender_to_pok collected_from_sender taken_by_courier
inpost in_transit taken_by_courier_from_pok adopted_at_source_branch adopted_at_sorting_center sent_from_source_branch
inpost in_transit unstack_from_box_machine redirect_to_box readdressed
inpost out_for_delivery out_for_delivery out_for_delivery_to_address
inpost ready_for_pickup ready_to_pickup ready_to_pickup_from_pok pickup_reminder_sent stack_in_box_machine
inpost ready_for_pickup courier_avizo_in_customer_service_point
inpost delivered delivered
inpost exception undelivered undelivered_wrong_address rejected_by_receiver pickup_time_expired
inpost exception stack_parcel_pickup_time_expired avizo delay_in_delivery missing oversized claimed
inpost returned returned_to_sender
inpost cancelled canceled
dhl registered pre-transit
dhl in_transit transit
dhl delivered delivered
dhl exception failure
dhl unknown unknown
poczta_polska registered P_REJ_KN1
poczta_polska in_transit P_NAD P_PZL P_WZL P_WEPL P_WEOC P_WYPL P_WYOC P_ZWC
poczta_polska out_for_delivery P_WD P_WDML
poczta_polska ready_for_pickup P_A P_PA P_KWD
poczta_polska delivered P_D P_OWU
poczta_polska exception P_ND P_NDPD P_NDPJ P_NDZAP P_R
poczta_polska returning P_NDZ
dpd registered 030103 040200 040501 040605
dpd in_transit 040101 050101 110101 120100 150101 160101 500500 230402
dpd out_for_delivery 170101
dpd delivered 190101 190102 190201
dpd exception 200101 209999
dpd returning 230403 230408
gls registered PREADVICE PLANNEDPICKUP INPICKUP
gls in_transit INTRANSIT INWAREHOUSE
gls out_for_delivery INDELIVERY
gls ready_for_pickup DELIVEREDPS
gls delivered DELIVERED
gls exception NOTDELIVERED NOTPICKEDUP
gls cancelled CANCELED
ups registered 003 079 080 157
ups in_transit 005 010 025 038 039 160
ups out_for_delivery 006 021 037 072 089 091 146 162
ups ready_for_pickup 017 040 144 161
ups delivered 011 11 026
ups exception 013 022 023 024 046 059 060 061 062 064 069 145
ups returning 035 036
ups returned 034 067
ups cancelled 007
fedex registered OC EP OX
fedex in_transit PU IT IX AR DP AF FD CC
fedex out_for_delivery OD ED
fedex ready_for_pickup HL HP
fedex delivered DL
fedex exception DE SE DD CD
fedex returning RS
fedex cancelled CA";

/// Near misses of listed codes and unlisted words, for each carrier.
const UNLISTED: [(Carrier, &str); 7] = [
    (
        Inpost,
        "Delivered|delivered |taken|return_pickup_confirmation_to_sender|avizo2",
    ),
    (Dhl, "Delivered|pretransit|"),
    (PocztaPolska, "P_DOR|p_d|P_D |P_ZDJ"),
    (Dpd, "190301|30103|90101|170102|230401|500501"),
    (Gls, "delivered|DELIVERED_PS|INTRANSIT2"),
    (Ups, "999|000|011a|1100"),
    (Fedex, "dl|DLX|XX"),
];

#[tokio::test]
async fn every_code_of_the_table_has_its_status() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let carrier = world.carrier;
        for line in CELLS.lines() {
            let mut words = line.split(' ');
            if words.next() != Some(carrier.as_str()) {
                continue;
            }
            let status = TrackingStatus::parse(words.next().unwrap()).unwrap();
            for code in words {
                let expected = Sighting {
                    status,
                    at: Some(at("2026-01-05T11:30:00Z")),
                    raw_code: code.to_owned(),
                };
                let sighting = found(world.hears(fixtures::parcel(carrier, code)).await);
                assert_eq!(sighting, expected, "{carrier:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_unlisted_code_is_unknown_and_a_long_one_is_cut() {
    join_all(UNLISTED.iter().map(async |(carrier, codes)| {
        let world = World::new(*carrier).await;
        for code in codes.split('|') {
            let sighting = found(world.hears(fixtures::parcel(*carrier, code)).await);
            assert_eq!(
                (sighting.status, &*sighting.raw_code),
                (Unknown, code),
                "{carrier:?}"
            );
        }
    }))
    .await;
    let world = World::new(Gls).await;
    let sighting = found(world.hears(fixtures::parcel(Gls, &"Ż".repeat(100_000))).await);
    assert_eq!((sighting.status, sighting.raw_code), (Unknown, "Ż".repeat(64)));
}
