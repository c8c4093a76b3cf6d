//! What is measured of mails, parcels, and the work beside requests as a whole.

use super::{
    Kind::{Counter, Gauge},
    Label, Meter, label, meter,
};

const ABOUT: &[&str] = &["shipment", "account"];
const CARRIER: &[Label] = &[label(
    "carrier",
    &["inpost", "dhl", "poczta_polska", "dpd", "gls", "ups", "fedex"],
)];

pub(super) const METERS: &[Meter] = &[
    meter(
        "mail_queue_mails",
        Gauge,
        "Mails that wait to be sent, due or not; 10000 stands for that many or more, NaN for unknown.",
        &[label("about", ABOUT)],
    ),
    meter(
        "mail_queue_oldest_due_seconds",
        Gauge,
        "For how long the oldest mail that is due has been; NaN for unknown.",
        &[label("about", ABOUT)],
    ),
    meter(
        "mails_total",
        Counter,
        "Sendings of mails, by what they are about and what becomes of them.",
        &[
            label("about", ABOUT),
            label("fate", &["sent", "put_off", "given_up"]),
        ],
    ),
    meter(
        "tracking_queue_parcels",
        Gauge,
        "Parcels about which their carrier is due to be asked; 10000 stands for that many or more, NaN for unknown.",
        CARRIER,
    ),
    meter(
        "tracking_queue_oldest_due_seconds",
        Gauge,
        "For how long the oldest parcel that is due has been; NaN for unknown.",
        CARRIER,
    ),
    meter(
        "parcels_followed_total",
        Counter,
        "Parcels that were due and looked at.",
        &[],
    ),
    meter(
        "worker_failures_total",
        Counter,
        "Batches of work that failed, by worker.",
        &[label(
            "worker",
            &[
                "mails",
                "account_mails",
                "parcels",
                "deliveries",
                "reconciliation",
                "usage",
                "cleaning",
            ],
        )],
    ),
];
