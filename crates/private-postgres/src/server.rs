//! Starting a server in its place and waiting until it is ready.

use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::guard::{Guard, POLL, Plan, Until};
use crate::leftover::PidFile;
use crate::place::Place;
use crate::{Binaries, Error, Options, files, initdb, leftover, lock};

/// A log longer than this is begun anew at a start, in bytes.
const LONGEST_LOG: u64 = 8 * 1024 * 1024;

/// A running server with its guard.
pub(crate) struct Server {
    guard: Guard,
    process: Pid,
}

impl Server {
    /// Ends what an earlier owner left, makes the data where there are none, and starts the server.
    pub(crate) fn start(
        place: &Place,
        binaries: &Binaries,
        options: &Options,
        until: Until<'_>,
    ) -> Result<Self, Error> {
        let life = leftover::end(place)?;
        initdb::ensure(place, binaries, options.primary.as_ref(), &life)?;
        place.clear_socket()?;
        let (log, log_start) = open_log(place)?;
        let guard = Guard::spawn(Plan {
            account: place.account,
            until,
            remove: options.throw_away.then(|| place.root()),
            life,
            log,
            server: &command(place, binaries, options),
        })?;
        Self::wait(guard, place, options.start_timeout, log_start)
    }

    fn wait(mut guard: Guard, place: &Place, patience: Duration, log_start: u64) -> Result<Self, Error> {
        let begun = Instant::now();
        let log_file = place.log();
        loop {
            let running = guard.is_running();
            let file = PidFile::read(&place.data());
            if !running {
                return Err(Error::NotStarted {
                    free: files::free(&place.data()),
                    log: files::tail(&log_file, log_start),
                    log_file,
                });
            }
            if let Some(PidFile {
                server: process,
                ready: true,
            }) = file
            {
                return Ok(Self { guard, process });
            }
            if begun.elapsed() > patience {
                guard.stop(file.map(|file| file.server));
                return Err(Error::NotReady {
                    waited: patience,
                    log: files::tail(&log_file, log_start),
                    log_file,
                });
            }
            thread::sleep(POLL);
        }
    }

    pub(crate) fn process(&self) -> Pid {
        self.process
    }

    pub(crate) fn guard_id(&self) -> u32 {
        self.guard.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.guard.is_running()
    }

    /// Ceases to be the owner of a dead server, so that its guard does nothing later on.
    pub(crate) fn release(&mut self) {
        self.guard.release();
    }

    /// Ends the server and makes sure that nothing of it lives, even where its guard was killed.
    pub(crate) fn stop(self, place: &Place) -> Result<(), Error> {
        self.guard.stop(Some(self.process));
        leftover::end(place).map(drop)
    }
}

fn command(place: &Place, binaries: &Binaries, options: &Options) -> Command {
    let mut command = Command::new(binaries.program("postgres"));
    command.arg("-D").arg(place.data());
    for setting in options.server_settings(place.connection().socket_folder()) {
        command.arg("-c").arg(setting);
    }
    command
}

/// The server's log and its length so far.
fn open_log(place: &Place) -> Result<(File, u64), Error> {
    let path = place.log();
    let too_long = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.len() > LONGEST_LOG);
    if too_long {
        files::remove(&path)?;
    }
    let log = lock::open(&path, File::options().append(true).create(true))?;
    files::hand_over(&path, place.account).map_err(Error::at(&path))?;
    let length = log.metadata().map_err(Error::at(&path))?.len();
    Ok((log, length))
}
