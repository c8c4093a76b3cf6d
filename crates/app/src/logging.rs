//! The log: events of the program on stderr, one a line.

use std::{io, panic};

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{LogConfig, LogFormat};

/// The HTTP library tells of each of its threads at each start.
const QUIET: &str = "actix_server=warn";

/// Sends all that is logged to stderr from now on, panics too. Only the first call has an effect.
pub(crate) fn start(config: &LogConfig) {
    // Text that cannot be parsed was refused with the configuration.
    let filter = EnvFilter::try_new(directives(&config.level)).unwrap_or_default();
    let log = fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match config.format {
        LogFormat::Json => log.json().try_init(),
        LogFormat::Text => log
            .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
            .try_init(),
    };
    if started.is_ok() {
        panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("no message");
            tracing::error!(place, panic = message, "a thread panicked");
        }));
    }
}

fn directives(level: &str) -> String {
    if level.contains("actix_server") {
        level.to_owned()
    } else {
        format!("{QUIET},{level}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_library_is_quiet_unless_it_is_named() {
        assert_eq!(directives("info"), "actix_server=warn,info");
        assert_eq!(directives("debug,actix_server=info"), "debug,actix_server=info");
        assert_eq!(
            EnvFilter::new(directives("info")).to_string(),
            "actix_server=warn,info"
        );
    }
}
