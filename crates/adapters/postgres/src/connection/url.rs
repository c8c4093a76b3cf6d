//! Parses a database URL into its servers and their connection settings.

use std::{borrow::Cow, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host as ConfigHost, SslMode, TargetSessionAttrs};

use super::{host::Host, tls::TlsParameters};

/// Checks a URL and the files that it names, without connecting.
pub fn check_url(url: &str) -> Result<(), DatabaseUrlError> {
    parse(url).map(drop)
}

/// Parses a URL into its servers, in order, each with its own driver configuration: with a single one, the
/// driver would spend the whole timeout on a server that accepts a connection and does not respond. Keepalive
/// and similar defaults are set so that a dead connection is detected. With several servers, the one that
/// accepts writes is required, whether the URL says so or not.
pub(crate) fn parse(url: &str) -> Result<Vec<Host>, DatabaseUrlError> {
    if url.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"')) != url {
        return Err(invalid("is in quotes or surrounded by white space: remove them"));
    }
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(malformed());
    }
    let (url, tls) = without_tls(url)?;
    let whole = config(&url, &tls)?;
    let (hosts, addresses) = (whole.get_hosts().len(), whole.get_hostaddrs().len());
    let (servers, ports) = (hosts.max(addresses), whole.get_ports().len());
    if servers == 0 {
        return Err(invalid(NO_HOST));
    }
    if whole.get_dbname().is_none() {
        return Err(invalid(
            "names no database: write postgres://user:password@host:port/database",
        ));
    }
    if whole.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        return Err(invalid(
            "asks for a server that only reads, and this service writes: write target_session_attrs=read-write",
        ));
    }
    let connector = tls.connector()?;
    let paired = hosts == 0 || addresses == 0 || hosts == addresses;
    if !paired || (ports > 1 && ports != servers) {
        return Err(malformed());
    }
    // With `hostaddr` the servers stay in one configuration, and the driver tries them in turn.
    let each = if servers == 1 || addresses > 0 {
        vec![url]
    } else {
        one_by_one(&url)
            .filter(|urls| urls.len() == servers)
            .ok_or_else(malformed)?
    };
    let host = |url: &String| {
        let mut own = config(url, &tls)?;
        if servers > 1 {
            own.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let port = own.get_ports().first().copied().unwrap_or(5432);
        let name = match (own.get_hosts().first(), own.get_hostaddrs().first()) {
            (Some(ConfigHost::Unix(folder)), _) => {
                let name = folder.display().to_string();
                // The server supports no TLS on a Unix socket, and no one can eavesdrop there.
                own.ssl_mode(SslMode::Disable);
                name
            }
            (Some(ConfigHost::Tcp(name)), _) => format!("{name}:{port}"),
            (None, Some(address)) => format!("{address}:{port}"),
            (None, None) => return Err(invalid(NO_HOST)),
        };
        Ok(Host {
            name,
            config: own,
            tls: connector.clone(),
        })
    };
    each.iter().map(host).collect()
}

fn config(url: &str, tls: &TlsParameters) -> Result<Config, DatabaseUrlError> {
    let mut config = url.parse::<Config>().map_err(|error| unreadable(&error))?;
    if config.get_application_name().is_none() {
        config.application_name("seller-api");
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
    }
    config.keepalives_idle(Duration::from_secs(30));
    config.ssl_mode(tls.ssl_mode());
    Ok(config)
}

/// One URL per server in the authority.
fn one_by_one(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at_checked(rest.find('/')?)?;
    let servers = authority.rsplit('@').next()?;
    let credentials = authority.strip_suffix(servers)?;
    let each = servers.split(',');
    Some(
        each.map(|server| format!("{scheme}://{credentials}{server}{path}"))
            .collect(),
    )
}

/// The driver's parse error, without text that may be part of a password.
fn unreadable(error: &tokio_postgres::Error) -> DatabaseUrlError {
    let reason = std::error::Error::source(error).map(ToString::to_string);
    let reason = reason.unwrap_or_default();
    if reason.starts_with("unknown option") {
        // Its name is not shown: it may be part of a password.
        return invalid(format!(
            "has an unknown parameter behind its `?`: known are {KNOWN_PARAMETERS}; a ? in a password has to be percent-encoded"
        ));
    }
    // These are the driver's own option names.
    match reason.strip_prefix("invalid value for option `") {
        Some(name) => invalid(format!(
            "has an invalid value for `{}`",
            name.trim_end_matches('`')
        )),
        None => malformed(),
    }
}

/// Splits the URL into one without TLS parameters, of which the driver knows only some, and these parameters.
fn without_tls(url: &str) -> Result<(String, TlsParameters), DatabaseUrlError> {
    let mut tls = TlsParameters::default();
    // A question mark may occur in a password, although it should be escaped.
    let credentials = url.find('@').map_or(0, |at| at + 1);
    let rest = url.get(credentials..).unwrap_or_default();
    // A second `@` is part of the password, and what the driver would parse as the host is, too.
    if rest.split('?').next().is_some_and(|place| place.contains('@')) {
        return Err(malformed());
    }
    let Some(begin) = rest.find('?') else {
        return Ok((url.to_owned(), tls));
    };
    let Some((address, query)) = url.split_at_checked(credentials + begin) else {
        return Err(malformed());
    };
    let mut others = Vec::new();
    for parameter in query.trim_start_matches('?').split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| malformed())?;
        if !tls.take(name, &value)? {
            others.push(parameter);
        }
    }
    if others.is_empty() {
        return Ok((address.to_owned(), tls));
    }
    Ok((format!("{address}?{}", others.join("&")), tls))
}

/// The supported URL parameters, most used first.
const KNOWN_PARAMETERS: &str = "sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, channel_binding, target_session_attrs, \
    application_name, options, connect_timeout, tcp_user_timeout, keepalives, keepalives_idle, keepalives_interval, \
    keepalives_retries, hostaddr and load_balance_hosts";

const NO_HOST: &str = "names no host: write postgres://user:password@host:port/database";

/// Why a database URL is invalid. Never contains text that may be a password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DatabaseUrlError(Cow<'static, str>);

pub(super) fn invalid(reason: impl Into<Cow<'static, str>>) -> DatabaseUrlError {
    DatabaseUrlError(reason.into())
}

pub(crate) fn malformed() -> DatabaseUrlError {
    invalid(
        "is no URL of the form postgres://user:password@host:port/database; characters such as @ / : ? # in a password \
         have to be percent-encoded",
    )
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

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
    fn invalid_urls_are_refused_without_their_secret() {
        let cases = "
            is no URL of the form       | host=db password=secret
            is no URL of the form       | mysql://u:secret@db/x
            is no URL of the form       | postgres://u:secret@db/x?port=1,2
            is no URL of the form       | postgres://u:secret@a,b/x?hostaddr=127.0.0.1
            is no URL of the form       | postgres://u:sec@secret@127.0.0.1:1/x
            is no URL of the form       | postgres://u:a@b@secret@db/x?sslmode=disable
            is no URL of the form       | postgres://u:a?b@secret@db/x?sslmode=disable
            is no URL of the form       | postgres://u:a@secret/b@db/x
            has an invalid value for `port` | postgres://u:secret@db:port/x
            has an invalid value for `connect_timeout` | postgres://u:secret@db/x?connect_timeout=secret
            has an unknown parameter    | postgres://u:secret@db/x?sslmod=secret
            is in quotes                | 'postgres://u:secret@db/x'
            names no host               | postgres:///x
            names no database           | postgres://u:secret@db
            has an sslmode that is none | postgres://u:secret@db/x?sslmode=allow
            names certificates          | postgres://u:secret@db/x?sslrootcert=/ca.pem
            names only one of sslcert   | postgres://u:secret@db/x?sslmode=require&sslcert=/c.pem
            asks for a server           | postgres://u:secret@db/x?target_session_attrs=read-only";
        let is_refused = |url: &str, expected: &str| {
            let error = refusal(url).to_string();
            assert!(
                error.starts_with(expected) && !error.contains("secret"),
                "{url}: {error}"
            );
        };
        for case in cases.trim().lines() {
            let (expected, url) = case.split_once('|').unwrap();
            is_refused(&url.trim().replace('\'', "\""), expected.trim());
        }
        is_refused("", "is no URL of the form");
        is_refused("postgres://u:secret@db/x\n", "is in quotes");
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let url = format!(
            "postgres://u:secret@db/x?sslmode=verify-full&sslrootcert={}",
            path.display()
        );
        let reason = refusal(&url).to_string();
        assert!(
            reason.contains("sslrootcert") && reason.contains("ca.pem"),
            "{reason}"
        );
        std::fs::write(&path, "no certificate").unwrap();
        let reason = refusal(&url).to_string();
        assert!(reason.contains("holds no certificate"), "{reason}");
    }

    #[test]
    fn valid_urls_are_accepted() {
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
    fn each_host_has_its_own_configuration() {
        let url = "postgres://u:p%3F@one:5433,two/x?sslmode=require&options=-c%20a%3Db&connect_timeout=3";
        let hosts = parse(url).unwrap();
        let names = hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["one:5433", "two:5432"]);
        for (host, (name, port)) in hosts.iter().zip([("one", 5433), ("two", 5432)]) {
            let config = &host.config;
            assert_eq!(config.get_hosts(), [ConfigHost::Tcp(name.to_owned())]);
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
                "of several hosts, the one that accepts writes"
            );
        }
    }

    #[test]
    fn a_host_name_goes_with_its_address() {
        let host = only("postgres://u@db:6000/x?hostaddr=127.0.0.9");
        assert_eq!(host.config.get_hosts(), [ConfigHost::Tcp("db".to_owned())]);
        assert_eq!(
            host.config.get_hostaddrs(),
            ["127.0.0.9".parse::<IpAddr>().unwrap()]
        );
        assert_eq!(host.config.get_ports(), [6000]);
        let bare = only("postgres:///x?hostaddr=127.0.0.9");
        assert_eq!(bare.name, "127.0.0.9:5432");
    }

    #[test]
    fn a_question_mark_in_a_password_starts_no_parameters() {
        let host = only("postgres://u:a?sslmode=b@db/x?sslmode=disable");
        assert_eq!(host.config.get_password(), Some(b"a?sslmode=b".as_slice()));
        assert_eq!(host.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn tls_is_off_where_disabled_and_on_sockets() {
        for (url, expected) in [
            ("postgres://u@db/x?sslmode=disable", SslMode::Disable),
            (
                "postgres://u@%2Frun%2Fpostgresql/x?sslmode=require",
                SslMode::Disable,
            ),
            ("postgres://u@db/x", SslMode::Prefer),
        ] {
            assert_eq!(only(url).config.get_ssl_mode(), expected, "{url}");
        }
    }
}
