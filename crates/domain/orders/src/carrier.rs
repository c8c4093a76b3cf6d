//! Carriers, tracking numbers, and carriers' reports about parcels.

use chrono::{DateTime, Utc};
use kernel::Invalid;

kernel::words! {
    /// A parcel carrier (contract: Shipment).
    #[derive(PartialOrd, Ord)]
    pub enum Carrier {
        Inpost = "inpost",
        Dhl = "dhl",
        PocztaPolska = "poczta_polska",
        Dpd = "dpd",
        Gls = "gls",
        Ups = "ups",
        Fedex = "fedex",
        /// Any other carrier; it is never queried.
        Other = "other",
    }
}

impl Carrier {
    /// The brand name.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Inpost => "InPost",
            Self::Dhl => "DHL",
            Self::PocztaPolska => "Poczta Polska",
            Self::Dpd => "DPD",
            Self::Gls => "GLS",
            Self::Ups => "UPS",
            Self::Fedex => "FedEx",
            Self::Other => "Other",
        }
    }

    /// The public tracking page of a parcel; none for [`Carrier::Other`].
    pub fn tracking_url(self, number: &TrackingNumber) -> Option<String> {
        let (before, after) = match self {
            Self::Inpost => ("https://inpost.pl/sledzenie-przesylek?number=", ""),
            Self::Dhl => (
                "https://www.dhl.com/pl-pl/home/tracking.html?tracking-id=",
                "&submit=1",
            ),
            Self::PocztaPolska => ("https://emonitoring.poczta-polska.pl/?numer=", ""),
            Self::Dpd => ("https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=", ""),
            Self::Gls => ("https://gls-group.com/PL/pl/sledzenie-paczek?match=", ""),
            Self::Ups => ("https://www.ups.com/track?loc=pl_PL&tracknum=", ""),
            Self::Fedex => ("https://www.fedex.com/fedextrack/?trknbr=", ""),
            Self::Other => return None,
        };
        Some(format!("{before}{}{after}", number.as_str()))
    }
}

/// 4 to 64 ASCII letters, digits and hyphens, stored exactly as given. Such a number needs no escaping in a
/// URL or in XML.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrackingNumber(String);

impl TrackingNumber {
    pub fn new(number: String) -> Result<Self, Invalid> {
        let allowed = number.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !(4..=64).contains(&number.len()) || !allowed {
            return Err(Invalid::new("must be 4 to 64 ASCII letters, digits and hyphens"));
        }
        Ok(Self(number))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

kernel::words! {
    /// The normalised tracking status of all carriers.
    pub enum TrackingStatus {
        /// Announced, not handed over yet.
        Registered = "registered",
        InTransit = "in_transit",
        /// Out for delivery today.
        OutForDelivery = "out_for_delivery",
        /// Waiting for collection.
        ReadyForPickup = "ready_for_pickup",
        /// Delivered to the buyer; final.
        Delivered = "delivered",
        /// The carrier reports a problem.
        Exception = "exception",
        /// On its way back.
        Returning = "returning",
        /// Back with the sender.
        Returned = "returned",
        /// The shipment was cancelled.
        Cancelled = "cancelled",
        /// The carrier's code is unknown to us.
        Unknown = "unknown",
    }
}

/// The result of a carrier look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The carrier knows the parcel.
    Found(TrackingReport),
    /// The carrier does not know the parcel, or not yet.
    NotFound,
    /// This service has no access to the carrier.
    NotConfigured,
    /// The carrier was not asked, or gave no usable response; with the reason.
    Unavailable(String),
}

/// A carrier's report about a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackingReport {
    pub status: TrackingStatus,
    /// When the status began, if the carrier reports it; for `Delivered` the time of delivery.
    pub at: Option<DateTime<Utc>>,
    /// The carrier's original code.
    pub raw_code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_matched_whole() {
        for fine in ["ABCD", "520107010449991132638442", &"x".repeat(64)] {
            assert!(TrackingNumber::new(fine.to_owned()).is_ok(), "{fine}");
        }
        for refused in [
            "",
            "abc",
            " abcd",
            "abcd ",
            "ab_cd",
            "żółw",
            "abcd\n",
            &"x".repeat(65),
        ] {
            assert!(TrackingNumber::new(refused.to_owned()).is_err(), "{refused}");
        }
    }

    #[test]
    fn carriers_are_displayed_capitalized_and_all_but_other_have_a_page() {
        for carrier in Carrier::ALL {
            let name = carrier.display_name();
            assert_eq!(name.to_lowercase().replace(' ', "_"), carrier.as_str());
            assert!(name.starts_with(|first: char| first.is_uppercase()), "{name}");
            let url = carrier.tracking_url(&TrackingNumber::new("AB-12".to_owned()).unwrap());
            assert_eq!(url.is_none(), carrier == Carrier::Other);
            assert!(url.is_none_or(|url| url.contains("AB-12")));
        }
    }
}
