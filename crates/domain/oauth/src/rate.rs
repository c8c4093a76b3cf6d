//! The rate limiters, one for each variant of [`Limiter`], and what they count (contract: Limits).

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use kernel::SellerId;
use uuid::Uuid;

use crate::{ClientId, SecretHash};

/// A limiter. Each counts separately, in windows of one clock minute of the database, or one clock hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum Limiter {
    /// An application's requests to `/v1`.
    Api = 1,
    /// Calls of `/oauth/token` and `/oauth/revoke` from an address.
    TokenByAddress = 2,
    /// Authenticated calls of `/oauth/token` and `/oauth/revoke` of a client.
    TokenByClient = 3,
    /// Calls of `/oauth/authorize` from an address.
    AuthorizeByAddress = 4,
    /// Sign-in attempts and password reset requests from an address.
    SignInByAddress = 5,
    /// Sign-in attempts and password reset requests for an account.
    SignInByAccount = 6,
    /// Test events to a subscription.
    TestEvents = 7,
    /// Redeliveries by hand to a subscription.
    Redeliveries = 8,
    /// Pages and forms of the panel of a signed-in account.
    PanelPages = 9,
    /// Applications that a seller registers in the panel, in an hour.
    Registrations = 10,
    /// Mails with a link to an account, in an hour.
    LinkMails = 11,
    /// An application's reads of a seller's event journal (`GET /v1/events`).
    Events = 12,
}

impl Limiter {
    /// The number stored in rows.
    #[expect(clippy::as_conversions, reason = "the number that the enum gives it")]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Those whose windows are clock hours. Such a limiter counts in the transaction of what it counts.
    pub const HOURLY: [Self; 2] = [Self::Registrations, Self::LinkMails];

    pub fn is_hourly(self) -> bool {
        Self::HOURLY.contains(&self)
    }
}

/// The counted subject, as 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subject(Uuid);

impl Subject {
    /// An address: the whole IPv4 address (as IPv4-mapped IPv6), or the /64 of an IPv6 address, which usually
    /// belongs to one customer.
    pub fn address(address: IpAddr) -> Self {
        let bits = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => v4.to_ipv6_mapped().to_bits(),
                None => v6.to_bits() & (u128::MAX << 64),
            },
        };
        Self(Uuid::from_u128(bits))
    }

    /// Calls by web pages from an address: they count apart from those by programs.
    pub fn pages_at(address: IpAddr) -> Self {
        Self::hashed(&format!("pages at {}", Self::address(address).0))
    }

    pub fn client(client: ClientId) -> Self {
        Self(client.uuid())
    }

    /// An account by the given e-mail address, whether or not it exists. Case does not matter, as in the
    /// comparison of accounts' addresses.
    pub fn account(email: &str) -> Self {
        Self::hashed(&email.to_ascii_lowercase())
    }

    pub const fn seller(seller: SellerId) -> Self {
        Self(seller.uuid())
    }

    /// Something that a seller names by id, whether or not it belongs to the seller: no seller can use up
    /// another one's limit.
    pub fn of_seller(seller: SellerId, thing: Uuid) -> Self {
        Self::hashed(&format!("{seller}/{thing}"))
    }

    fn hashed(text: &str) -> Self {
        let hash = SecretHash::of(text);
        let first = hash.bytes().first_chunk::<16>().copied().unwrap_or_default();
        Self(Uuid::from_bytes(first))
    }

    /// The stored form.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The call's place, from 1.
    pub place: u64,
    /// When the window ends.
    pub resets_at: DateTime<Utc>,
    /// The database's time at the count.
    pub counted_at: DateTime<Utc>,
}

impl Count {
    /// The place compared with a limit of calls in a window.
    pub fn against(self, limit: u32) -> crate::Quota {
        crate::Quota {
            limit,
            place: self.place,
            resets_at: self.resets_at,
            counted_at: self.counted_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(address: &str) -> Subject {
        Subject::address(address.parse().unwrap())
    }

    #[test]
    fn one_network_is_one_subject() {
        assert_eq!(subject("2001:db8:1:2::1"), subject("2001:db8:1:2:ffff::9"));
        assert_ne!(subject("2001:db8:1:2::1"), subject("2001:db8:1:3::1"));
        assert_eq!(subject("192.0.2.1"), subject("::ffff:192.0.2.1"));
        assert_ne!(subject("192.0.2.1"), subject("192.0.2.2"));
    }

    #[test]
    fn the_numbers_in_the_rows_are_pinned() {
        let limiters = [
            Limiter::Api,
            Limiter::TokenByAddress,
            Limiter::TokenByClient,
            Limiter::AuthorizeByAddress,
            Limiter::SignInByAddress,
            Limiter::SignInByAccount,
            Limiter::TestEvents,
            Limiter::Redeliveries,
            Limiter::PanelPages,
            Limiter::Registrations,
            Limiter::LinkMails,
            Limiter::Events,
        ];
        assert_eq!(
            limiters.map(Limiter::code),
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
        );
    }

    #[test]
    fn each_subject_has_its_own_row() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(Subject::client(one.into()).uuid(), one);
        let mapped: std::net::Ipv6Addr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(subject("192.0.2.1").uuid().as_u128(), mapped.to_bits());
        let rows = [
            Subject::of_seller(one.into(), one),
            Subject::of_seller(one.into(), other),
            Subject::of_seller(other.into(), one),
            Subject::account("shop@example.com"),
            Subject::account("another@example.com"),
        ]
        .map(Subject::uuid);
        let distinct: std::collections::HashSet<_> = rows.into_iter().collect();
        assert_eq!(distinct.len(), rows.len());
    }
}
