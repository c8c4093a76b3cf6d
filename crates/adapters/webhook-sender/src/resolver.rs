//! From a host to the addresses that a delivery may go to: the one place where names are resolved, and addresses judged.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use hickory_resolver::{
    TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
    },
    lookup_ip::LookupIp,
    net::{DnsError, NetError, NoRecords, runtime::TokioRuntimeProvider},
    proto::{op::ResponseCode, rr::Name},
    system_conf::read_system_conf,
};
use tokio::time::timeout;
use webhooks::{AddressRules, Failure, Host, WebhookUrl};

use crate::{SenderSettings, SettingsError};

/// The longest that an answer is remembered, whatever time its server gives it.
const REMEMBERED: Duration = Duration::from_mins(1);

/// The longest that "no such name" is remembered: an integrator may be setting the name up at this moment.
const ABSENCE_REMEMBERED: Duration = Duration::from_secs(5);

/// Resolves names with the domain name system alone: no hosts file, no search domains, no local aliases.
pub(crate) struct Resolver {
    /// One for each name server: to one that asks several, the failure of the quickest is everyone's answer.
    servers: Vec<TokioResolver>,
    rules: AddressRules,
    timeout: Duration,
}

impl Resolver {
    pub(crate) fn new(settings: &SenderSettings) -> Result<Self, SettingsError> {
        let unreadable = |why: NetError| SettingsError::NameServers(why.into());
        let servers = if settings.name_servers.is_empty() {
            let (machine, _) = read_system_conf().map_err(unreadable)?;
            machine.name_servers().to_vec()
        } else {
            settings.name_servers.iter().copied().map(server).collect()
        };
        let asking = |server| {
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
            let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            *builder.options_mut() = options(settings.resolve_timeout);
            builder.build()
        };
        let servers: Result<_, _> = servers.into_iter().map(asking).collect();
        Ok(Self {
            servers: servers.map_err(unreadable)?,
            rules: settings.rules.clone(),
            timeout: settings.resolve_timeout,
        })
    }

    /// The addresses of a URL's host, at least one. One address that must not be connected to spoils them all (D55): else a
    /// name with a public and a private address would be a way in. The URL may date from times of other rules.
    pub(crate) async fn addresses(&self, url: &WebhookUrl) -> Result<Vec<IpAddr>, Failure> {
        if !self.rules.admit(url) {
            return Err(Failure::AddressRefused);
        }
        let addresses = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.look_up(name).await.ok_or(Failure::Dns)?,
        };
        if addresses.iter().all(|address| self.rules.vet(*address)) {
            Ok(addresses)
        } else {
            Err(Failure::AddressRefused)
        }
    }

    /// The addresses of a name, those of IPv4 first. None when it has none, or when they cannot be had in time.
    async fn look_up(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut name = Name::from_ascii(name).ok()?;
        name.set_fqdn(true);
        let found = timeout(self.timeout, self.first_that_knows(name)).await.ok()??;
        let addresses = found.iter().collect::<Vec<_>>();
        (!addresses.is_empty()).then_some(addresses)
    }

    /// Asks all servers, and believes the first that has addresses or knows that there is no such name. One that fails, or
    /// refuses, or has nobody behind it says nothing about the name (RFC 1035 §7.2).
    async fn first_that_knows(&self, name: Name) -> Option<LookupIp> {
        let asked = self.servers.iter().map(|server| server.lookup_ip(name.clone()));
        let mut answers = asked.collect::<FuturesUnordered<_>>();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(found) => return Some(found),
                Err(error) if is_no_such_name(&error) => return None,
                Err(_) => {}
            }
        }
        None
    }
}

/// True for NXDOMAIN. That a name has no addresses of one kind is no such answer: the other kind may have failed.
fn is_no_such_name(error: &NetError) -> bool {
    matches!(
        error,
        NetError::Dns(DnsError::NoRecordsFound(NoRecords {
            response_code: ResponseCode::NXDomain,
            ..
        }))
    )
}

fn server(address: SocketAddr) -> NameServerConfig {
    let at = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let connections = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
    NameServerConfig::new(address.ip(), true, connections)
}

/// One query and one repetition fit into the time, so that a name whose server is silent about one kind of address still has
/// those of the other kind.
fn options(time: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = time * 9 / 20;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_max_ttl = Some(REMEMBERED);
    options.negative_max_ttl = Some(ABSENCE_REMEMBERED);
    options.max_active_requests = 1024;
    options.cache_size = 512;
    options
}
