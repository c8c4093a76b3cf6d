//! What a measurement stands on: a database of a certain size, filled through the product, with a server over it.

use anyhow::Context as _;

use crate::back_office::{BackOffice, Seller};
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::import::{self, Filling};
use crate::machine::{self, Machine};
use crate::options::StandOptions;
use crate::program::Program;
use crate::progress::Progress;
use crate::server::Server;

/// What every bench of a run stands on.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The program under test.
    pub(crate) program: Program,
    /// The cluster that its databases are in.
    pub(crate) cluster: Cluster,
    /// What all of it runs on.
    pub(crate) machine: Machine,
}

impl Ground {
    /// Finds or builds the program, and starts a cluster.
    pub(crate) async fn prepare(options: &StandOptions, progress: Progress) -> anyhow::Result<Self> {
        let step = progress.step("building the program");
        let program = Program::locate(options.server.as_deref()).await?;
        drop(step);
        let _step = progress.step("starting PostgreSQL");
        let shared_buffers = options
            .shared_buffers
            .clone()
            .unwrap_or_else(machine::shared_buffers);
        let cluster = Cluster::start(&shared_buffers, options.folder.as_deref()).await?;
        let machine = Machine::describe(&cluster, &program).await?;
        Ok(Self {
            program,
            cluster,
            machine,
        })
    }

    /// Gives a database's disk space back, once nobody measures on it any more.
    pub(crate) async fn clear(&self, database: &str) -> anyhow::Result<()> {
        let drop = format!("drop database {database} with (force)");
        self.cluster.sql("postgres", &drop).await?;
        Ok(())
    }
}

/// A filled database and the server over it.
#[derive(Debug)]
pub(crate) struct Stand {
    /// The database's name in the cluster.
    pub(crate) database: String,
    /// What it holds.
    pub(crate) catalogue: Catalogue,
    /// Who holds it, in the catalogue's order.
    pub(crate) sellers: Vec<Seller>,
    /// The server.
    pub(crate) server: Server,
    /// How the filling went.
    pub(crate) filling: Filling,
    /// An operator's token.
    pub(crate) operator: String,
    /// The key that the server seals with; others over the same database need it.
    pub(crate) key: String,
}

impl Stand {
    /// Makes the database, migrates it and fills it, with a server of its own.
    pub(crate) async fn raise(
        cluster: &Cluster,
        program: &Program,
        database: &str,
        catalogue: Catalogue,
        progress: Progress,
    ) -> anyhow::Result<Self> {
        let key = migrated(cluster, program, database).await?;
        let url = cluster.url(database);
        let token = operator_token(program, &url, "bench").await?;
        let server = Server::start(program, &url, &key, &cluster.scratch(&format!("{database}.log"))).await?;
        let mut back_office = BackOffice::open(&server, &token).await?;
        let sellers = register(&mut back_office, catalogue, progress).await?;
        let filling = import::fill(cluster, &server, &mut back_office, catalogue, &sellers, progress).await?;
        let database = database.to_owned();
        Ok(Self {
            database,
            catalogue,
            sellers,
            server,
            filling,
            operator: token,
            key,
        })
    }

    /// The tokens of all sellers, in the catalogue's order.
    pub(crate) fn tokens(&self) -> Vec<&str> {
        self.sellers.iter().map(|seller| seller.token.as_str()).collect()
    }

    /// The ids of all sellers, in the catalogue's order.
    pub(crate) fn seller_ids(&self) -> Vec<&str> {
        self.sellers.iter().map(|seller| seller.id.as_str()).collect()
    }

    /// The seller with the most offers.
    pub(crate) fn first_seller(&self) -> anyhow::Result<&Seller> {
        self.sellers.first().context("there is no seller")
    }

    /// Brings the tables to rest, as a database is some time after a bulk load.
    pub(crate) async fn settle(&self, cluster: &Cluster) -> anyhow::Result<()> {
        cluster.sql(&self.database, "vacuum (analyze)").await?;
        cluster.sql(&self.database, "checkpoint").await?;
        Ok(())
    }
}

/// Makes a migrated database, and a key for servers over it.
pub(crate) async fn migrated(cluster: &Cluster, program: &Program, database: &str) -> anyhow::Result<String> {
    cluster
        .sql("postgres", &format!("create database {database}"))
        .await?;
    let url = cluster.url(database);
    program.output(&url, &["migrate"]).await?;
    let key = program.output(&url, &["admin", "keys", "generate"]).await?;
    word(&key, |word| word.contains(':')).context("no key was generated")
}

/// Makes an operator's token with a name of its own.
async fn operator_token(program: &Program, url: &str, name: &str) -> anyhow::Result<String> {
    let arguments = ["admin", "operator-tokens", "create", "--name", name];
    let output = program.output(url, &arguments).await?;
    word(&output, |word| word.starts_with("ps_op_")).context("no operator token was made")
}

async fn register(
    back_office: &mut BackOffice,
    catalogue: Catalogue,
    progress: Progress,
) -> anyhow::Result<Vec<Seller>> {
    let step = progress.counted("registering sellers and applications", catalogue.sellers);
    let mut sellers = Vec::new();
    for number in 0..catalogue.sellers {
        sellers.push(back_office.register(number).await?);
        step.advance(1);
    }
    Ok(sellers)
}

fn word(output: &str, is_it: impl Fn(&str) -> bool) -> Option<String> {
    output
        .split_whitespace()
        .find(|word| is_it(word))
        .map(str::to_owned)
}
