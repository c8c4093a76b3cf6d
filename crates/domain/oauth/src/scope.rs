//! Scopes: the permissions of a token.

use std::fmt;

kernel::words! {
    /// One permission (contract: Scopes), in the contract's order. A scope's place is its bit in [`ScopeSet`] and in
    /// the database: it never changes, and a new scope is the last.
    pub enum Scope {
        /// Read offers.
        OffersRead = "offers:read",
        /// Create and edit offers, change prices and stock.
        OffersWrite = "offers:write",
        /// Read orders and buyer data.
        OrdersRead = "orders:read",
        /// Report shipments; the buyer is notified.
        ShipmentsWrite = "shipments:write",
        /// Read sales settings.
        SettingsRead = "settings:read",
        /// Change sales settings.
        SettingsWrite = "settings:write",
        /// Reserved for an announced resource.
        OrdersWrite = "orders:write",
        /// Read shipments.
        ShipmentsRead = "shipments:read",
        /// Reserved for an announced resource.
        ReturnsRead = "returns:read",
        /// Reserved for an announced resource.
        ReturnsWrite = "returns:write",
        /// Reserved for an announced resource.
        PricelistsRead = "pricelists:read",
        /// Reserved for an announced resource.
        PricelistsWrite = "pricelists:write",
        /// Reserved for an announced resource.
        PoliciesRead = "policies:read",
        /// Reserved for an announced resource.
        PoliciesWrite = "policies:write",
        /// Reserved for an announced resource.
        BillingRead = "billing:read",
        /// Reserved for an announced resource.
        Messaging = "messaging",
        /// Reserved for an announced resource.
        ProfileRead = "profile:read",
    }
}

impl Scope {
    /// The scopes that operations of this version require.
    pub const IN_USE: [Self; 7] = [
        Self::OffersRead,
        Self::OffersWrite,
        Self::OrdersRead,
        Self::ShipmentsWrite,
        Self::SettingsRead,
        Self::SettingsWrite,
        Self::ShipmentsRead,
    ];

    #[expect(clippy::as_conversions, reason = "its place in the enum")]
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes. Displayed in the OAuth format: names separated by single spaces, in the contract's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u32);

/// An unknown name in a scope list, or bits without a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope `{0}`")]
pub struct UnknownScope(pub String);

impl ScopeSet {
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Parses a list in the OAuth format (RFC 6749 §3.3). Duplicates are merged.
    pub fn parse(list: &str) -> Result<Self, UnknownScope> {
        let names = list.split(' ').filter(|name| !name.is_empty());
        names
            .map(|name| Scope::parse(name).ok_or_else(|| UnknownScope(name.to_owned())))
            .collect()
    }

    /// The stored form: one bit per scope, by its number.
    pub const fn bits(self) -> i32 {
        self.0.cast_signed()
    }

    /// Parses the stored form.
    pub fn from_bits(bits: i32) -> Result<Self, UnknownScope> {
        let set = Self(bits.cast_unsigned());
        if set.is_subset_of(Self::all()) {
            Ok(set)
        } else {
            Err(UnknownScope(format!("bits {bits:#x}")))
        }
    }

    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// True if every member is also in `other`.
    pub(crate) const fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in the contract's order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Scope::as_str).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bits_are_pinned() {
        let in_order = "offers:read offers:write orders:read shipments:write settings:read settings:write \
                        orders:write shipments:read returns:read returns:write pricelists:read pricelists:write \
                        policies:read policies:write billing:read messaging profile:read";
        for (bit, name) in in_order.split(' ').enumerate() {
            assert_eq!(ScopeSet::from_bits(1 << bit).unwrap().to_string(), name);
        }
        assert!(ScopeSet::from_bits(1 << 17).is_err());
        assert!(ScopeSet::from_bits(-1).is_err());
    }

    proptest! {
        #[test]
        fn a_set_is_parsed_back(bits in 0_i32..(1 << 17)) {
            let set = ScopeSet::from_bits(bits).unwrap();
            prop_assert_eq!(ScopeSet::parse(&set.to_string()).unwrap(), set);
            prop_assert_eq!(ScopeSet::from_bits(set.bits()).unwrap(), set);
        }
    }

    #[test]
    fn a_list_may_repeat_names_and_spaces() {
        let repeated = ScopeSet::parse("offers:read  offers:read").unwrap();
        assert_eq!(repeated.to_string(), "offers:read");
        assert_eq!(ScopeSet::parse("").unwrap(), ScopeSet(0));
        let unknown = UnknownScope("Offers:read".to_owned());
        assert_eq!(ScopeSet::parse("offers:read Offers:read"), Err(unknown));
    }
}
