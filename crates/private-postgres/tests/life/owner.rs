//! Owns a cluster until its standard input ends. Tests kill this process.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::{env, io};

use private_postgres::{Cluster, Options};

/// The arguments are the cluster's folder, and a second one for a throw-away cluster.
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let options = Options::new(arguments.next().ok_or("no folder")?);
    let cluster = Cluster::start(options.delete_at_end(arguments.next().is_some()))?;
    let server = cluster.server_process().ok_or("no server")?;
    let data = cluster.data_folder();
    writeln!(
        io::stdout(),
        "{server}\n{}\n{}",
        data.display(),
        cluster.url("postgres")
    )?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
