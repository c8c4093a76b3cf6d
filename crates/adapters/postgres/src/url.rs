//! Reading the URL of a database: which servers it names, and how they are spoken to.

use std::{net::IpAddr, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host as Place, TargetSessionAttrs},
};

use crate::{host::Host, settings::DatabaseUrlError, tls::TlsWishes};

/// Tells what is wrong with a URL, or with a file that it names, without connecting to anything.
pub fn check_url(url: &str) -> Result<(), DatabaseUrlError> {
    parse(url).map(drop)
}

/// Reads a URL into the servers that it names, in its order. What it leaves open is set so that a dead connection is noticed;
/// of several servers the one that takes writes is wanted, whether it says so or not.
pub(crate) fn parse(url: &str) -> Result<Vec<Host>, DatabaseUrlError> {
    if url.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"')) != url {
        return Err(DatabaseUrlError::Wrapped);
    }
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(DatabaseUrlError::Malformed);
    }
    let (url, wishes) = without_tls(url)?;
    let mut config = url.parse::<Config>().map_err(|error| unreadable(&error))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(DatabaseUrlError::NoHost);
    }
    if config.get_dbname().is_none() {
        return Err(DatabaseUrlError::NoDatabase);
    }
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        return Err(DatabaseUrlError::ReadOnly);
    }
    if config.get_application_name().is_none() {
        config.application_name("seller-api");
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
    }
    config.keepalives_idle(Duration::from_secs(30));
    config.ssl_mode(wishes.ssl_mode());
    let tls = wishes.connector()?;
    let places = places(&config)?;
    if places.len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let host = |(place, address, port): (Place, Option<IpAddr>, u16)| {
        let mut own = without_hosts(&config);
        own.port(port);
        if let Some(address) = address {
            own.hostaddr(address);
        }
        match place {
            Place::Tcp(name) => {
                own.host(name.as_str());
                Host {
                    name: format!("{name}:{port}"),
                    config: own,
                    tls: tls.clone(),
                }
            }
            // The server speaks no TLS there, and nobody can listen.
            Place::Unix(folder) => {
                own.host_path(&folder);
                Host {
                    name: folder.display().to_string(),
                    config: own,
                    tls: None,
                }
            }
        }
    };
    Ok(places.into_iter().map(host).collect())
}

/// What the driver cannot read, told without what may be a part of a password.
fn unreadable(error: &tokio_postgres::Error) -> DatabaseUrlError {
    let told = std::error::Error::source(error).map(ToString::to_string);
    let told = told.unwrap_or_default();
    if told.starts_with("unknown option") {
        return DatabaseUrlError::Parameter;
    }
    // These are the driver's own names.
    match told.strip_prefix("invalid value for option `") {
        Some(name) => DatabaseUrlError::Value(name.trim_end_matches('`').to_owned()),
        None => DatabaseUrlError::Malformed,
    }
}

/// The URL without what it says about TLS, of which the driver knows a part, and that.
fn without_tls(url: &str) -> Result<(String, TlsWishes), DatabaseUrlError> {
    let mut wishes = TlsWishes::default();
    // A question mark may stand in a password, though it should not.
    let credentials = url.find('@').map_or(0, |at| at + 1);
    let rest = url.get(credentials..).unwrap_or_default();
    // With a second `@` the password has one, and what the driver would take for the host is a part of it.
    if rest.split('?').next().is_some_and(|place| place.contains('@')) {
        return Err(DatabaseUrlError::Malformed);
    }
    let Some(begin) = rest.find('?') else {
        return Ok((url.to_owned(), wishes));
    };
    let Some((address, query)) = url.split_at_checked(credentials + begin) else {
        return Err(DatabaseUrlError::Malformed);
    };
    let mut others = Vec::new();
    for parameter in query.trim_start_matches('?').split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| DatabaseUrlError::Malformed)?;
        if !wishes.take(name, &value)? {
            others.push(parameter);
        }
    }
    if others.is_empty() {
        return Ok((address.to_owned(), wishes));
    }
    Ok((format!("{address}?{}", others.join("&")), wishes))
}

/// The servers with their addresses, where these are given, and ports, put together as libpq does.
fn places(config: &Config) -> Result<Vec<(Place, Option<IpAddr>, u16)>, DatabaseUrlError> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |given: usize| given <= 1 || given == count;
    let paired = hosts.is_empty() || addresses.is_empty() || hosts.len() == addresses.len();
    if !paired || !fits(ports.len()) {
        return Err(DatabaseUrlError::Malformed);
    }
    let place = |n: usize| {
        let address = addresses.get(n).copied();
        let named = hosts.get(n).cloned();
        let place = named.or_else(|| address.map(|address| Place::Tcp(address.to_string())))?;
        let port = ports.get(n).or_else(|| ports.first()).copied();
        Some((place, address, port.unwrap_or(5432)))
    };
    Ok((0..count).filter_map(place).collect())
}

/// The configuration but for its hosts, addresses and ports, which the driver can add and not take away.
fn without_hosts(config: &Config) -> Config {
    let mut bare = Config::new();
    if let Some(user) = config.get_user() {
        bare.user(user);
    }
    if let Some(password) = config.get_password() {
        bare.password(password);
    }
    if let Some(name) = config.get_dbname() {
        bare.dbname(name);
    }
    if let Some(options) = config.get_options() {
        bare.options(options);
    }
    if let Some(name) = config.get_application_name() {
        bare.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        bare.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        bare.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        bare.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        bare.keepalives_retries(retries);
    }
    bare.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts());
    bare
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    fn refusal(url: &str) -> DatabaseUrlError {
        parse(url).err().unwrap()
    }

    fn only(url: &str) -> Host {
        let mut hosts = parse(url).unwrap();
        assert_eq!(hosts.len(), 1, "{url}");
        hosts.remove(0)
    }

    #[test]
    fn urls_that_are_refused() {
        for (url, expected) in [
            ("", DatabaseUrlError::Malformed),
            ("host=db password=secret", DatabaseUrlError::Malformed),
            ("mysql://u:secret@db/x", DatabaseUrlError::Malformed),
            (
                "postgres://u:secret@db:port/x",
                DatabaseUrlError::Value("port".to_owned()),
            ),
            (
                "postgres://u:secret@db/x?connect_timeout=secret",
                DatabaseUrlError::Value("connect_timeout".to_owned()),
            ),
            (
                "postgres://u:secret@db/x?sslmod=secret",
                DatabaseUrlError::Parameter,
            ),
            ("\"postgres://u:secret@db/x\"", DatabaseUrlError::Wrapped),
            ("postgres://u:secret@db/x\n", DatabaseUrlError::Wrapped),
            ("postgres://u:secret@db/x?port=1,2", DatabaseUrlError::Malformed),
            (
                "postgres://u:secret@a,b/x?hostaddr=127.0.0.1",
                DatabaseUrlError::Malformed,
            ),
            (
                "postgres://u:sec@secret@127.0.0.1:1/x",
                DatabaseUrlError::Malformed,
            ),
            (
                "postgres://u:a@b@secret@db/x?sslmode=disable",
                DatabaseUrlError::Malformed,
            ),
            (
                "postgres://u:a?b@secret@db/x?sslmode=disable",
                DatabaseUrlError::Malformed,
            ),
            ("postgres://u:a@secret/b@db/x", DatabaseUrlError::Malformed),
            ("postgres:///x", DatabaseUrlError::NoHost),
            ("postgres://u:secret@db", DatabaseUrlError::NoDatabase),
            (
                "postgres://u:secret@db/x?sslmode=allow",
                DatabaseUrlError::SslMode,
            ),
            (
                "postgres://u:secret@db/x?sslrootcert=/ca.pem",
                DatabaseUrlError::Unchecked,
            ),
            (
                "postgres://u:secret@db/x?sslmode=require&sslcert=/c.pem",
                DatabaseUrlError::HalfIdentity,
            ),
            (
                "postgres://u:secret@db/x?target_session_attrs=read-only",
                DatabaseUrlError::ReadOnly,
            ),
        ] {
            let error = refusal(url);
            assert_eq!(error, expected, "{url}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let url = format!(
            "postgres://u:secret@db/x?sslmode=verify-full&sslrootcert={}",
            path.display()
        );
        let told = refusal(&url).to_string();
        assert!(told.contains("sslrootcert") && told.contains("ca.pem"), "{told}");
        std::fs::write(&path, "no certificate").unwrap();
        let told = refusal(&url).to_string();
        assert!(told.contains("holds no certificate"), "{told}");
    }

    #[test]
    fn urls_that_are_fine() {
        for url in [
            "postgres://u:secret@db:5432/x",
            "postgresql://db/x?connect_timeout=3",
            "postgres://u@%2Frun%2Fpostgresql/x",
            "postgres://u:a%40b@db/x?application_name=a@b",
            "postgres://u@one:5432,two:5433/x?target_session_attrs=read-write",
        ] {
            assert!(parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn every_server_has_a_configuration_of_its_own() {
        let url = "postgres://u:p%3F@one:5433,two/x?sslmode=require&options=-c%20a%3Db&connect_timeout=3";
        let hosts = parse(url).unwrap();
        let names = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["one:5433", "two:5432"]);
        for (host, (name, port)) in hosts.iter().zip([("one", 5433), ("two", 5432)]) {
            let config = &host.config;
            assert_eq!(config.get_hosts(), [Place::Tcp(name.to_owned())]);
            assert_eq!(config.get_ports(), [port]);
            assert_eq!(config.get_user(), Some("u"));
            assert_eq!(config.get_password(), Some(b"p?".as_slice()));
            assert_eq!(config.get_dbname(), Some("x"));
            assert_eq!(config.get_options(), Some("-c a=b"));
            assert_eq!(config.get_application_name(), Some("seller-api"));
            assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
            assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(10)));
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
            assert_eq!(
                config.get_target_session_attrs(),
                TargetSessionAttrs::ReadWrite,
                "of several, the one that takes writes"
            );
            assert!(host.tls.is_some());
        }
    }

    #[test]
    fn names_and_addresses_go_together() {
        let host = only("postgres://u@db:6000/x?hostaddr=127.0.0.9");
        assert_eq!(host.config.get_hosts(), [Place::Tcp("db".to_owned())]);
        assert_eq!(
            host.config.get_hostaddrs(),
            ["127.0.0.9".parse::<IpAddr>().unwrap()]
        );
        assert_eq!(host.config.get_ports(), [6000]);
        let bare = only("postgres:///x?hostaddr=127.0.0.9");
        assert_eq!(bare.name, "127.0.0.9:5432");
    }

    #[test]
    fn a_question_mark_in_a_password_begins_no_parameters() {
        let host = only("postgres://u:a?sslmode=b@db/x?sslmode=disable");
        assert_eq!(host.config.get_password(), Some(b"a?sslmode=b".as_slice()));
        assert_eq!(host.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn what_needs_no_protection_gets_none() {
        assert!(only("postgres://u@db/x?sslmode=disable").tls.is_none());
        assert!(
            only("postgres://u@%2Frun%2Fpostgresql/x?sslmode=require")
                .tls
                .is_none()
        );
        let usual = only("postgres://u@db/x");
        assert_eq!(usual.config.get_ssl_mode(), SslMode::Prefer);
        assert!(usual.tls.is_some());
    }
}
