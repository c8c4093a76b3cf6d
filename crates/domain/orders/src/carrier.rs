//! Carriers, tracking numbers, and carriers' reports about parcels.

use chrono::{DateTime, Utc};
use kernel::Invalid;

/// A parcel carrier (contract: Shipment).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    Inpost,
    Dhl,
    PocztaPolska,
    Dpd,
    Gls,
    Ups,
    Fedex,
    /// Any other carrier; it is never queried.
    Other,
}

impl Carrier {
    /// Every carrier, in the contract's order.
    pub const ALL: [Self; 8] = [
        Self::Inpost,
        Self::Dhl,
        Self::PocztaPolska,
        Self::Dpd,
        Self::Gls,
        Self::Ups,
        Self::Fedex,
        Self::Other,
    ];

    /// The contract's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inpost => "inpost",
            Self::Dhl => "dhl",
            Self::PocztaPolska => "poczta_polska",
            Self::Dpd => "dpd",
            Self::Gls => "gls",
            Self::Ups => "ups",
            Self::Fedex => "fedex",
            Self::Other => "other",
        }
    }

    /// The carrier with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|carrier| carrier.as_str() == word)
    }

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

/// 4 to 64 ASCII letters, digits and hyphens, stored exactly as given. Such a number needs no escaping in a URL or in XML.
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

/// The normalised tracking status of all carriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackingStatus {
    /// Announced, not handed over yet.
    Registered,
    /// In transit.
    InTransit,
    /// Out for delivery today.
    OutForDelivery,
    /// Waiting for collection.
    ReadyForPickup,
    /// Delivered to the buyer; final.
    Delivered,
    /// The carrier reports a problem.
    Exception,
    /// On its way back.
    Returning,
    /// Back with the sender.
    Returned,
    /// The shipment was cancelled.
    Cancelled,
    /// The carrier's code is unknown to us.
    Unknown,
}

impl TrackingStatus {
    pub const ALL: [Self; 10] = [
        Self::Registered,
        Self::InTransit,
        Self::OutForDelivery,
        Self::ReadyForPickup,
        Self::Delivered,
        Self::Exception,
        Self::Returning,
        Self::Returned,
        Self::Cancelled,
        Self::Unknown,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::InTransit => "in_transit",
            Self::OutForDelivery => "out_for_delivery",
            Self::ReadyForPickup => "ready_for_pickup",
            Self::Delivered => "delivered",
            Self::Exception => "exception",
            Self::Returning => "returning",
            Self::Returned => "returned",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The result of a carrier look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The carrier knows the parcel.
    Found(TrackingReport),
    /// The carrier does not know the parcel, or not yet.
    NotFound,
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
    fn names_are_parsed_back_and_displayed_capitalized() {
        for carrier in Carrier::ALL {
            assert_eq!(Carrier::parse(carrier.as_str()), Some(carrier));
            let name = carrier.display_name();
            assert_eq!(name.to_lowercase().replace(' ', "_"), carrier.as_str());
            assert!(name.starts_with(|first: char| first.is_uppercase()), "{name}");
            let url = carrier.tracking_url(&TrackingNumber::new("AB-12".to_owned()).unwrap());
            assert_eq!(url.is_none(), carrier == Carrier::Other);
            assert!(url.is_none_or(|url| url.contains("AB-12")));
        }
        for status in TrackingStatus::ALL {
            assert_eq!(TrackingStatus::parse(status.as_str()), Some(status));
        }
    }
}
