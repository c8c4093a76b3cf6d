//! Resolves a host to the addresses that a delivery may connect to. Nothing else resolves names or checks
//! addresses.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use tokio::time::timeout;
use webhooks::{AddressRules, AttemptFailure, Host, WebhookUrl};

use crate::{SenderSettings, SettingsError};

/// Maximum TTL of an answer.
const MAX_TTL: Duration = Duration::from_mins(1);

/// Maximum TTL of "no such name": the integrator may be creating the record at this moment.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(5);

/// Uses DNS only: no hosts file, no search domains, no local aliases.
pub(crate) struct Resolver {
    /// One per name server: a resolver with several servers returns the first failure as its answer.
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
        let resolver = |server| {
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
            let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            *builder.options_mut() = options(settings.resolve_timeout);
            builder.build()
        };
        let servers: Result<_, _> = servers.into_iter().map(resolver).collect();
        Ok(Self {
            servers: servers.map_err(unreadable)?,
            rules: settings.rules.clone(),
            timeout: settings.resolve_timeout,
        })
    }

    /// The addresses of a URL's host, at least one. A single forbidden address makes the whole answer
    /// forbidden (D55): otherwise a name with a public and a private address would get around the rules. The
    /// rules may have changed since the URL was registered.
    pub(crate) async fn addresses(&self, url: &WebhookUrl) -> Result<Vec<IpAddr>, AttemptFailure> {
        if !self.rules.allows_url(url) {
            return Err(AttemptFailure::AddressRefused);
        }
        let addresses = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.look_up(name).await.ok_or(AttemptFailure::Dns)?,
        };
        if addresses.iter().all(|address| self.rules.allows(*address)) {
            Ok(addresses)
        } else {
            Err(AttemptFailure::AddressRefused)
        }
    }

    /// IPv4 addresses first. None if the name has no addresses or no answer arrives in time.
    async fn look_up(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut name = Name::from_ascii(name).ok()?;
        name.set_fqdn(true);
        let lookup = timeout(self.timeout, self.first_answer(name)).await.ok()??;
        let addresses = lookup.iter().collect::<Vec<_>>();
        (!addresses.is_empty()).then_some(addresses)
    }

    /// Queries all servers and takes the first answer with addresses, or NXDOMAIN. A server that fails,
    /// refuses or does not respond says nothing about the name (RFC 1035 §7.2).
    async fn first_answer(&self, name: Name) -> Option<LookupIp> {
        let queries = self.servers.iter().map(|server| server.lookup_ip(name.clone()));
        let mut answers = queries.collect::<FuturesUnordered<_>>();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(lookup) => return Some(lookup),
                Err(error) if is_no_such_name(&error) => return None,
                Err(_) => {}
            }
        }
        None
    }
}

/// NXDOMAIN. Missing addresses of one family do not count: the query for the other family may have failed.
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

/// One query and one retry fit into the time. So a name resolves in one family even if its server ignores
/// queries for the other.
fn options(time: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = time * 9 / 20;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    options.max_active_requests = 1024;
    // Answers, of which a name has two. One with four thousand addresses takes a megabyte or two.
    options.cache_size = 64;
    options
}
