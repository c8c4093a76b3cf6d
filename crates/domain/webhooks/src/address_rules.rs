//! Which addresses deliveries may go to (contract: Address rules).

use std::net::IpAddr;

use ipnet::IpNet;
use kernel::is_public;
use serde::{Deserialize, Serialize};

use crate::{Host, Scheme, WebhookUrl};

/// The general policy for delivery addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressPolicy {
    /// `https` to the public internet.
    #[default]
    Public,
    /// Any address, also by `http`: for local development only.
    Any,
}

/// The policy, and additional networks that the operator denies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressRules {
    pub policy: AddressPolicy,
    /// Networks that are denied under every policy.
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
    /// Whether a delivery may connect to the address. An IPv4-mapped address (RFC 4291 §2.5.5.2) reaches the IPv4 host
    /// that it embeds, so it is denied if that one is.
    pub fn allows(&self, address: IpAddr) -> bool {
        let reached = address.to_canonical();
        let denied = |network: &IpNet| network.contains(&address) || network.contains(&reached);
        self.policy.admits(address) && !self.deny.iter().any(denied)
    }

    /// Whether a delivery may go to the URL, judged by its scheme, and by its host if that is an IP address. The
    /// addresses of a host name are vetted one by one.
    pub fn allows_url(&self, url: &WebhookUrl) -> bool {
        let scheme = self.policy == AddressPolicy::Any || url.scheme() == Scheme::Https;
        scheme
            && match url.host() {
                Host::Name(_) => true,
                Host::Address(address) => self.allows(*address),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(policy: AddressPolicy, deny: &[&str]) -> AddressRules {
        AddressRules {
            policy,
            deny: deny.iter().map(|network| network.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn denied_networks_are_denied_under_any_policy() {
        for policy in [AddressPolicy::Public, AddressPolicy::Any] {
            let rules = rules(policy, &["8.8.8.0/24", "2606:4700::/32", "127.0.0.0/8"]);
            let denied = "8.8.8.8 ::ffff:8.8.8.8 2606:4700:4700::1111 ::ffff:127.0.0.1";
            for denied in denied.split_whitespace() {
                assert!(!rules.allows(denied.parse().unwrap()), "{denied}");
            }
            assert!(rules.allows("8.8.9.8".parse().unwrap()));
            assert_eq!(rules.allows("::1".parse().unwrap()), policy == AddressPolicy::Any);
        }
    }

    #[test]
    fn a_stored_url_is_checked_again() {
        let cases = [
            ("https://example.com/", true, true),
            ("http://example.com/", false, true),
            ("https://127.0.0.1/", false, true),
            ("https://8.8.8.8/", false, false),
            ("https://1.1.1.1/", true, true),
        ];
        for (text, by_public, by_any) in cases {
            let url = WebhookUrl::parse(text, AddressPolicy::Any).unwrap();
            let admits = |policy| rules(policy, &["8.8.8.8/32"]).allows_url(&url);
            let admitted = (admits(AddressPolicy::Public), admits(AddressPolicy::Any));
            assert_eq!(admitted, (by_public, by_any), "{text}");
        }
    }
}
