//! A process of the product: its log, signals and exit.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    /// The fields of the line that reports the addresses.
    listening: UnboundedReceiver<Value>,
}

impl Process {
    /// Starts the command and collects its output in a log.
    pub fn start(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (found, listening) = unbounded_channel();
        let log = Arc::<Mutex<String>>::default();
        let streams: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("stdout is piped")),
            Box::new(child.stderr.take().expect("stderr is piped")),
        ];
        for stream in streams {
            let (log, found) = (Arc::clone(&log), found.clone());
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
                    if event
                        .pointer("/fields/message")
                        .is_some_and(|text| text == "listening")
                    {
                        // The process may have been dropped.
                        drop(found.send(event));
                    }
                    *log.lock().expect("the log is whole") += &(line + "\n");
                }
            });
        }
        Self {
            child,
            log,
            listening,
        }
    }

    /// Waits until the process listens, and returns its address on each of these listeners.
    pub async fn addresses<const N: usize>(&mut self, listeners: [&str; N]) -> [String; N] {
        let event = timeout(START_TIMEOUT, self.listening.recv()).await;
        let Ok(Some(event)) = event else {
            panic!("the program does not listen:\n{}", self.log());
        };
        listeners.map(|listener| {
            let address = event.pointer(&format!("/fields/{listener}"));
            let address = address.and_then(Value::as_str).expect("an address");
            format!("http://{address}")
        })
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("the log is whole").clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), signal).expect("the signal is sent");
    }

    /// Pauses the process (SIGSTOP), and waits until all of its threads have stopped: on a busy machine that
    /// takes a while.
    pub async fn pause(&self) {
        self.signal(Signal::STOP);
        let threads = format!("/proc/{}/task", self.id());
        let runs = || {
            let threads = std::fs::read_dir(&threads).expect("the process lives").flatten();
            let mut states =
                threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default());
            // The state follows the name in parentheses.
            states.any(|stat| {
                stat.rsplit_once(") ")
                    .is_some_and(|(_, state)| !state.starts_with('T'))
            })
        };
        while runs() {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Continues a paused process (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the process (SIGKILL) and waits until it has exited.
    pub fn kill(&mut self) {
        self.child.kill().expect("the signal is sent");
        self.child.wait().expect("the process ended");
    }

    /// Waits until the process exits and returns its exit code.
    pub async fn exit_code(mut self) -> Option<i32> {
        let ended = spawn_blocking(move || self.child.wait()).await;
        ended
            .expect("the waiting thread ended")
            .expect("the process ended")
            .code()
    }
}

#[expect(clippy::print_stderr, reason = "of a test that has failed")]
impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
        // What the program complained of may explain why the test has failed.
        if std::thread::panicking()
            && let Ok(log) = self.log.lock()
        {
            let is_complaint = |line: &&str| line.contains("\"ERROR\"") || line.contains("\"WARN\"");
            eprintln!(
                "its log: {:#?}",
                log.lines().filter(is_complaint).collect::<Vec<_>>()
            );
        }
    }
}
