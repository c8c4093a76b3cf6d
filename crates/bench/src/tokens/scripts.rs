//! What pgbench writes beside the token endpoint: the same rows of the same tables.
//!
//! pgbench has no random texts: a token's hash is the SHA-256 of a random number of 16 digits, which PostgreSQL calculates
//! in half a microsecond. A family's id comes of a sequence, for the product's ids rise with time: random ones would be
//! written all over the index.

use super::seed::{APPLICATIONS, IDS, SCOPES};
use crate::pgbench::Script;

/// The first half of families' ids.
const ID_HIGH: &str = "0199000000027000";
/// The least number for the other half, and for what hashes are made of: 16 digits, the first of which is a UUID's variant.
const ID_LOW: u64 = 8_000_000_000_000_000;
/// A number that a hash is made of.
const RANDOM: &str = "random(1000000000000000, 8999999999999999)";
/// How long an access token lives.
const ACCESS_TTL: &str = "interval '12 hours'";
/// How long a refresh token lives.
const REFRESH_TTL: &str = "interval '90 days'";

/// A token of a random application, by a transaction of one statement for each row.
pub(super) fn token(database: &str, applications: usize) -> Script {
    let (choice, family) = (choice(applications), client_family());
    let text = format!(
        "{choice}\
         begin;\n\
         {family} returning id as family \\gset\n\
         insert into access_tokens (family_id, hash, expires_at) \
         values (:family, {hash}, api_now() + {ACCESS_TTL});\n\
         commit;\n",
        hash = hash("key"),
    );
    script(database, text)
}

/// The same by one statement that is a transaction of its own, which is what the product does for a call that comes alone.
pub(super) fn token_by_one_statement(database: &str, applications: usize) -> Script {
    let (choice, family) = (choice(applications), client_family());
    let text = format!(
        "{choice}\
         with family as ({family} returning id) insert into access_tokens (family_id, hash, expires_at) \
         select id, {hash}, api_now() + {ACCESS_TTL} from family;\n",
        hash = hash("key"),
    );
    script(database, text)
}

/// A refresh: every client has a family of its own, made before its first one, and uses the token that it stored last.
pub(super) fn refresh(database: &str, applications: usize) -> Script {
    let (current, next) = (hash("current"), hash("next"));
    let family = family("authorization_code", ", generation", ", 1");
    let text = format!(
        "\\if :first\n\
         \\set first 0\n\
         \\set n :client_id % {applications}\n\
         \\set current {RANDOM}\n\
         {family} returning id as family \\gset\n\
         insert into refresh_tokens (family_id, hash, scopes, expires_at) \
         values (:family, {current}, {SCOPES}, api_now() + {REFRESH_TTL});\n\
         \\endif\n\
         \\set next {RANDOM}\n\
         begin;\n\
         select seller_id, client_id, scopes, revoked_at, generation from families where id = :family for no key update;\n\
         select scopes, expires_at, used_at from refresh_tokens where family_id = :family and hash = {current};\n\
         with used as (update refresh_tokens set used_at = api_now() where family_id = :family and hash = {current} \
         and used_at is null returning family_id), \
         refresh as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
         select family_id, {next}, {SCOPES}, api_now() + {REFRESH_TTL} from used) \
         insert into access_tokens (family_id, hash, scopes, expires_at) \
         select family_id, {next}, {SCOPES}, api_now() + {ACCESS_TTL} from used;\n\
         commit;\n\
         \\set current :next\n"
    );
    script(database, text)
}

fn script(database: &str, text: String) -> Script {
    Script {
        database: database.to_owned(),
        text,
    }
}

/// Of an application, and of what its token's hash is made of.
fn choice(applications: usize) -> String {
    let last = applications.saturating_sub(1);
    format!("\\set n random(0, {last})\n\\set key {RANDOM}\n")
}

fn client_family() -> String {
    family("client_credentials", "", "")
}

/// Stores a family of the application `n`, with further columns.
fn family(kind: &str, columns: &str, values: &str) -> String {
    format!(
        "insert into families (id, seller_id, client_id, kind, scopes{columns}) \
         select ('{ID_HIGH}' || {ID_LOW} + nextval('{IDS}'))::uuid, seller_id, client_id, '{kind}', {SCOPES}{values} \
         from {APPLICATIONS} where n = :n"
    )
}

fn hash(variable: &str) -> String {
    format!("sha256(int8send(:{variable}))")
}

#[cfg(test)]
mod tests;
