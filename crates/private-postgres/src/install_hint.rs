//! What to type to get a PostgreSQL server on the platform at hand.

use std::env;
use std::fs;
use std::path::Path;

/// The line that tells how to install a server here.
pub(crate) fn for_this_machine() -> String {
    let release = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
        .unwrap_or_default();
    let sudo = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "sudo "
    };
    hint(&Release::parse(&release), is_installed, sudo)
}

/// What `os-release` says about the system (freedesktop.org, os-release(5)).
struct Release {
    id: String,
    version: u32,
}

impl Release {
    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\''])
                .to_owned()
        };
        let major = field("VERSION_ID")
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        Self {
            id: field("ID"),
            version: major.unwrap_or(u32::MAX),
        }
    }
}

fn hint(release: &Release, has: impl Fn(&str) -> bool, sudo: &str) -> String {
    let command = if has("apt-get") {
        apt(release, sudo)
    } else if has("dnf") {
        dnf(release, sudo)
    } else if has("apk") {
        format!("{sudo}apk add postgresql")
    } else if has("brew") {
        "brew install postgresql@17".to_owned()
    } else {
        return "install one: https://www.postgresql.org/download/".to_owned();
    };
    format!("install one with: {command}")
}

/// Older releases bring an older server; the project's own repository is set up by a script of their package.
fn apt(release: &Release, sudo: &str) -> String {
    let oldest = match release.id.as_str() {
        "debian" => 12,
        "ubuntu" => 23,
        _ => 0,
    };
    if release.version >= oldest {
        return format!("{sudo}apt-get install -y postgresql");
    }
    format!(
        "{sudo}apt-get install -y postgresql-common && \
         {sudo}/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y && {sudo}apt-get install -y postgresql-17"
    )
}

/// Red Hat's 8 and 9 have the newer servers in modules.
fn dnf(release: &Release, sudo: &str) -> String {
    if release.id != "fedora" && release.version < 10 {
        format!("{sudo}dnf module install -y postgresql:15/server")
    } else {
        format!("{sudo}dnf install -y postgresql-server")
    }
}

fn is_installed(program: &str) -> bool {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/sbin", "/opt/homebrew/bin", "/usr/local/bin"].map(Path::new);
    env::split_paths(&on_path).any(|folder| folder.join(program).is_file())
        || usual.iter().any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_on(os_release: &str, installed: &str) -> String {
        hint(
            &Release::parse(os_release),
            |program| program == installed,
            "sudo ",
        )
    }

    #[test]
    fn each_platform_has_its_command() {
        let debian = hint_on("ID=debian\nVERSION_ID=\"12\"", "apt-get");
        assert_eq!(debian, "install one with: sudo apt-get install -y postgresql");
        let ubuntu = hint_on("ID=ubuntu\nVERSION_ID=\"22.04\"", "apt-get");
        assert!(ubuntu.ends_with("apt-get install -y postgresql-17"), "{ubuntu}");
        let fedora = hint_on("ID=fedora\nVERSION_ID=42", "dnf");
        assert_eq!(fedora, "install one with: sudo dnf install -y postgresql-server");
        let rocky = hint_on("ID=\"rocky\"\nVERSION_ID=\"9.4\"", "dnf");
        assert!(rocky.contains("dnf module install"), "{rocky}");
        assert!(hint_on("ID=alpine\nVERSION_ID=3.20.1", "apk").ends_with("sudo apk add postgresql"));
        assert!(hint_on("", "brew").ends_with("brew install postgresql@17"));
        assert!(hint_on("ID=void", "xbps").contains("postgresql.org/download"));
    }

    #[test]
    fn a_hint_is_one_line() {
        assert_eq!(for_this_machine().lines().count(), 1);
    }
}
