//! Which addresses deliveries may go to (contract: Address rules).

use std::net::IpAddr;

use ipnet::IpNet;
use kernel::is_public;

use crate::{Host, Scheme, WebhookUrl};

/// Where deliveries may go in principle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressPolicy {
    /// By `https`, into the public internet.
    #[default]
    Public,
    /// Anywhere, by `http` too: for local development alone.
    Any,
}

/// The policy, and what the operator denies besides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressRules {
    /// The policy.
    pub policy: AddressPolicy,
    /// Networks that are denied under any policy.
    pub deny: Vec<IpNet>,
}

impl AddressPolicy {
    /// Whether the policy admits the address.
    pub fn admits(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Any => true,
        }
    }
}

impl AddressRules {
    /// Whether a delivery may connect to the address. An IPv4-mapped address (RFC 4291 §2.5.5.2) reaches the IPv4 host that
    /// it embeds, so it is denied with it.
    pub fn vet(&self, address: IpAddr) -> bool {
        let reached = address.to_canonical();
        let denied = |network: &IpNet| network.contains(&address) || network.contains(&reached);
        self.policy.admits(address) && !self.deny.iter().any(denied)
    }

    /// Whether a delivery may go to the URL as far as it tells itself: its scheme, and its host where that is an address.
    /// What a name resolves to is vetted one by one.
    pub fn admit(&self, url: &WebhookUrl) -> bool {
        let scheme = self.policy == AddressPolicy::Any || url.scheme() == Scheme::Https;
        scheme
            && match url.host() {
                Host::Name(_) => true,
                Host::Address(address) => self.vet(*address),
            }
    }
}
