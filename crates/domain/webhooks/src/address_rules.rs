//! Which addresses deliveries may go to (contract: Address rules).

use std::net::IpAddr;

use ipnet::IpNet;
use kernel::is_public;
use serde::{Deserialize, Serialize};

use crate::{Host, WebhookUrl};

/// The general policy for delivery addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressPolicy {
    /// `https` to the public internet.
    #[default]
    Public,
    /// Also this machine, by `https` or `http`: for a sandbox.
    Local,
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
            Self::Local => is_public(address) || is_loopback(address),
            Self::Any => true,
        }
    }
}

/// Whether the address is this machine's own, also if it is IPv4-mapped (RFC 4291 §2.5.5.2).
pub(crate) const fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl AddressRules {
    /// Whether a delivery may connect to the address. An IPv4-mapped address (RFC 4291 §2.5.5.2) reaches the
    /// IPv4 host that it embeds, so it is denied if that one is.
    pub fn allows(&self, address: IpAddr) -> bool {
        let reached = address.to_canonical();
        let denied = |network: &IpNet| network.contains(&address) || network.contains(&reached);
        self.policy.admits(address) && !self.deny.iter().any(denied)
    }

    /// Whether a delivery may go to the URL, judged by its scheme, and by its host if that is an IP address.
    /// The addresses of a host name are vetted one by one.
    pub fn allows_url(&self, url: &WebhookUrl) -> bool {
        url.broken_rule(self.policy).is_none()
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
        for policy in [AddressPolicy::Public, AddressPolicy::Local, AddressPolicy::Any] {
            let rules = rules(policy, &["8.8.8.0/24", "2606:4700::/32", "127.0.0.0/8"]);
            let denied = "8.8.8.8 ::ffff:8.8.8.8 2606:4700:4700::1111 ::ffff:127.0.0.1";
            for denied in denied.split_whitespace() {
                assert!(!rules.allows(denied.parse().unwrap()), "{denied}");
            }
            assert!(rules.allows("8.8.9.8".parse().unwrap()));
            assert_eq!(
                rules.allows("::1".parse().unwrap()),
                policy != AddressPolicy::Public
            );
            assert_eq!(
                rules.allows("10.0.0.1".parse().unwrap()),
                policy == AddressPolicy::Any
            );
        }
    }

    #[test]
    fn a_stored_url_is_checked_again() {
        let cases = [
            ("https://example.com/", [true, true, true]),
            ("http://example.com/", [false, false, true]),
            ("http://localhost/", [false, true, true]),
            ("https://127.0.0.1/", [false, true, true]),
            ("http://127.0.0.9/", [false, true, true]),
            ("http://[::1]:9000/", [false, true, true]),
            ("https://10.0.0.1/", [false, false, true]),
            ("http://1.1.1.1/", [false, false, true]),
            ("https://8.8.8.8/", [false, false, false]),
            ("https://1.1.1.1/", [true, true, true]),
        ];
        for (text, expected) in cases {
            let url = WebhookUrl::parse(text, AddressPolicy::Any).unwrap();
            let policies = [AddressPolicy::Public, AddressPolicy::Local, AddressPolicy::Any];
            let admitted = policies.map(|policy| rules(policy, &["8.8.8.8/32"]).allows_url(&url));
            assert_eq!(admitted, expected, "{text}");
            let denied = text == "https://8.8.8.8/";
            let accepted = policies.map(|policy| WebhookUrl::parse(text, policy).is_ok());
            assert_eq!(accepted, if denied { [true; 3] } else { expected }, "{text}");
        }
    }
}
