//! Executes the commands of `docs/operations/README.md` for the first start and for each kind of deployment.
//! The tested program replaces the installed one, and shell functions replace the commands that run it.

use std::{os::unix::fs::PermissionsExt as _, process::Command};

use private_postgres::Options;
use testkit::{TestDatabase, sealing_key};

use crate::restore::start_cluster;
use crate::{PROGRAM, configured::ConfigFile, operations, root, text, tools::run, words, yaml};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/operations/README.md")).unwrap()
}

/// For each kind of deployment: what runs the migrations, and what runs any other command.
fn deployments() -> Vec<(String, String, String)> {
    let page = page();
    let (_, table) = page.split_once("### Where commands run\n").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let command = |cell: &str| cell.trim_matches('`').to_owned();
            (cells[0].to_owned(), command(cells[1]), command(cells[2]))
        })
        .collect()
}

/// These functions drop their own arguments and run the program.
const WAYS: &str = r#"
program() { while [ "$1" != seller-api ]; do shift; done; shift; "$PROGRAM" "$@"; }
sudo() { program "$@"; }
docker() { program "$@"; }
kubectl() { while [ "$1" != -- ]; do shift; done; program "$@"; }
"#;

#[tokio::test]
async fn commands_run_wherever_the_program_does() {
    let database = TestDatabase::create().await;
    let config = ConfigFile::of(&format!("[database]\nurl = \"{}\"\n", database.url()));
    let deployments = deployments();
    assert_eq!(deployments.len(), 3);
    for (kind, _, command) in deployments {
        let (_, named) = command.split_once("--config ").unwrap();
        let command = command.replace(named, config.path.to_str().unwrap());
        let said = run(Command::new("bash")
            .args(["-eu", "-c", &format!("{WAYS}{command}")])
            .env("PROGRAM", PROGRAM));
        assert!(said.starts_with("AT "), "{kind}: {said}");
    }
}

#[test]
fn what_the_commands_name_is_there() {
    let [systemd, compose, kubernetes] = deployments().try_into().unwrap();
    let unit = systemd.1.split(' ').next_back().unwrap();
    assert!(operations(&format!("systemd/{unit}.service")).is_file());
    let source = text("systemd/seller-api@.service");
    let source = source
        .lines()
        .find_map(|line| line.strip_prefix("LoadCredential=config.toml:"));
    assert!(systemd.2.ends_with(source.unwrap()), "{}", systemd.2);

    let file = yaml("docker/compose.yaml").remove(0);
    let command = |service: &str| words(&file["services"][service]["command"]);
    let migrating = compose.1.split(' ').next_back().unwrap();
    assert_eq!(command(migrating)[0], "migrate");
    let last = command(compose.2.split(' ').nth(3).unwrap()).pop();
    assert!(compose.2.ends_with(&last.unwrap()), "{}", compose.2);

    let applied = kubernetes.1.split(' ').next_back().unwrap();
    assert!(operations(&format!("kubernetes/{applied}")).is_file());
    let deployment = yaml("kubernetes/api.yaml").remove(0);
    let name = deployment["metadata"]["name"].as_str().unwrap();
    let named = format!(" deploy/{name} -- seller-api ");
    assert!(kubernetes.2.contains(&named), "{}", kubernetes.2);
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let last = words(args).pop().unwrap();
    assert!(kubernetes.2.ends_with(&last), "{}", kubernetes.2);
}

#[tokio::test]
async fn two_roles_and_the_database_are_all_that_the_first_start_needs() {
    let page = page();
    let (_, rest) = page.split_once("```sql\nCREATE ROLE").unwrap();
    let (statements, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```sql\nALTER DEFAULT").unwrap();
    let (privileges, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    // PostgreSQL's account has to pass through this folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let cluster = start_cluster(Options::new(folder.path().join("cluster"))).await;
    let administrator = TestDatabase::at_url(&cluster.url("postgres"));
    let administrator = administrator.connect().await;
    // One at a time: a database cannot be created in a transaction.
    for statement in format!("CREATE ROLE{statements}").split_inclusive(";\n") {
        administrator.batch_execute(statement).await.unwrap();
    }
    let asked = "select pg_encoding_to_char(encoding)::text, datcollate::text, datctype::text from pg_database where datname = 'seller_api'";
    let made = administrator.query_one(asked, &[]).await.unwrap();
    let made = [made.get::<_, String>(0), made.get(1), made.get(2)];
    assert_eq!(made, ["UTF8", "C", "C.UTF-8"]);
    let within = TestDatabase::at_url(&cluster.url("seller_api")).connect().await;
    let grant = format!("ALTER DEFAULT{privileges}");
    within.batch_execute(&grant).await.unwrap();
    let user = cluster.connection().user();
    let url_of = |role: &str, password: &str| {
        let url = cluster.url("seller_api");
        let of_role = if url.contains(&format!("//{user}@")) {
            url.replacen(&format!("//{user}@"), &format!("//{role}:{password}@"), 1)
        } else {
            url.replacen(&format!("user={user}"), &format!("user={role}"), 1)
        };
        assert_ne!(url, of_role);
        of_role
    };
    let url = url_of("seller_api", "secret");
    let owners = url_of("seller_api_owner", "owner-secret");
    for words in [
        &["migrate"][..],
        &["admin", "operator-tokens", "create", "--name", "shop backend"],
        &["admin", "keys", "status"],
    ] {
        run(Command::new(PROGRAM)
            .args(words)
            .env("DATABASE_URL", &url)
            .env("SELLER_API__DATABASE__DIRECT_URL", &owners)
            .env("SELLER_API__KEYS__SEALING", sealing_key()));
    }
    let asked =
        "select string_agg(distinct tableowner::text, ' ') from pg_tables where schemaname = 'public'";
    let owner = within.query_one(asked, &[]).await.unwrap();
    assert_eq!(owner.get::<_, String>(0), "seller_api_owner");
    let asked = "select has_function_privilege('seller_api', oid, 'execute') from pg_proc where proname = 'analyze_grown_tables'";
    assert!(within.query_one(asked, &[]).await.unwrap().get::<_, bool>(0));
    drop((administrator, within));
    tokio::task::spawn_blocking(move || cluster.stop())
        .await
        .unwrap()
        .unwrap();
}
