//! Where lines of the log go: to stderr, those that tell of requests gathered for a moment.
//!
//! A system call for each request's line costs a busy server several percent of its time. So these lines wait, at most
//! [`PATIENCE`] long and [`FULL`] bytes in all; every other line goes at once, and takes with it what waits, so that the order
//! stays. None is dropped: where stderr is slow, whoever logs waits for it. Only an end without a last word (SIGKILL) takes
//! the waiting lines along.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line waits.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes that wait until somebody writes them before the time.
const FULL: usize = 64 * 1024;
/// What a pipe takes as a whole (`PIPE_BUF`): with no more at a time, lines of processes that share a pipe are never torn.
const WHOLE: usize = 4096;
/// The target of the lines that can wait.
const ACCESS: &str = "access";

/// The log's end. Clones are the same one.
#[derive(Debug)]
pub(super) struct Lines<W>(Arc<Shared<W>>);

#[derive(Debug)]
struct Shared<W> {
    waiting: Mutex<Vec<u8>>,
    /// Told when a first line waits.
    begun: Condvar,
    /// Held while lines are taken and written, so that they stay in order.
    sink: Mutex<Sink<W>>,
    patient: OnceLock<bool>,
}

/// Where lines go.
#[derive(Debug)]
struct Sink<W> {
    to: W,
    /// The last line went out in part, since there was no space for all of it.
    torn: bool,
}

impl<W: Write> Sink<W> {
    /// Writes whole lines, and begins a new one where the last one was torn: that one alone is spoiled.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn {
            self.to.write_all(b"\n")?;
            self.torn = false;
        }
        let mut rest = lines;
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let (done, left) = rest.split_at(written.min(rest.len()));
                    self.torn = !done.ends_with(b"\n");
                    rest = left;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<W> Clone for Lines<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write + Send + 'static> Lines<W> {
    /// Lines that go to `sink`.
    pub(super) fn to(sink: W) -> Self {
        Self(Arc::new(Shared {
            waiting: Mutex::default(),
            begun: Condvar::new(),
            sink: Mutex::new(Sink {
                to: sink,
                torn: false,
            }),
            patient: OnceLock::new(),
        }))
    }

    /// True once a thread writes what has waited. It is started for the first line that can wait; where there is none to be
    /// had, no line waits.
    fn in_time(&self) -> bool {
        *self.0.patient.get_or_init(|| {
            let lines = self.clone();
            let thread = thread::Builder::new().name("log".to_owned());
            thread.spawn(move || lines.write_in_time()).is_ok()
        })
    }

    /// Writes all that waits.
    pub(super) fn write_out(&self) -> io::Result<()> {
        let mut sink = lock(&self.0.sink);
        let waiting = std::mem::take(&mut *lock(&self.0.waiting));
        let mut rest = waiting.as_slice();
        while !rest.is_empty() {
            let (whole, later) = rest.split_at(whole_lines(rest));
            sink.write(whole)?;
            rest = later;
        }
        sink.to.flush()
    }

    fn write_in_time(&self) {
        loop {
            let waiting = lock(&self.0.waiting);
            drop(
                self.0
                    .begun
                    .wait_while(waiting, |waiting| waiting.is_empty())
                    .unwrap_or_else(PoisonError::into_inner),
            );
            thread::sleep(PATIENCE);
            // There is nobody to be told that the log cannot be written.
            drop(self.write_out());
        }
    }

    fn add(&self, line: &[u8], can_wait: bool) -> io::Result<()> {
        let mut waiting = lock(&self.0.waiting);
        let first = waiting.is_empty();
        waiting.extend_from_slice(line);
        let full = waiting.len() >= FULL;
        drop(waiting);
        if full || !(can_wait && self.in_time()) {
            return self.write_out();
        }
        if first {
            self.0.begun.notify_one();
        }
        Ok(())
    }
}

/// Where to cut, so that as many whole lines as a pipe takes at once come first; a longer line is left in one piece.
fn whole_lines(text: &[u8]) -> usize {
    let ends = |part: &[u8]| part.iter().rposition(|byte| *byte == b'\n');
    let end = match text.split_at_checked(WHOLE) {
        None => None,
        Some((head, tail)) => {
            let in_tail = || tail.iter().position(|byte| *byte == b'\n').map(|end| WHOLE + end);
            ends(head).or_else(in_tail)
        }
    };
    end.map_or(text.len(), |end| end + 1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes one line.
#[derive(Debug)]
pub(super) struct Pen<W> {
    lines: Lines<W>,
    can_wait: bool,
}

impl<W: Write + Send + 'static> Write for Pen<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.add(line, self.can_wait)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write + Send + 'static> MakeWriter<'_> for Lines<W> {
    type Writer = Pen<W>;

    fn make_writer(&self) -> Pen<W> {
        Pen {
            lines: self.clone(),
            can_wait: false,
        }
    }

    fn make_writer_for(&self, line: &Metadata<'_>) -> Pen<W> {
        Pen {
            lines: self.clone(),
            can_wait: line.target() == ACCESS && *line.level() >= Level::INFO,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Tells what is written to it, write by write.
    struct Told(mpsc::Sender<Vec<u8>>);

    impl Write for Told {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.send(text.to_vec()).unwrap();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines() -> (Lines<Told>, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel();
        (Lines::to(Told(sender)), receiver)
    }

    #[test]
    fn a_line_that_can_wait_is_written_by_itself_in_time() {
        let (lines, told) = lines();
        lines.add(b"one\n", true).unwrap();
        lines.add(b"two\n", true).unwrap();
        let mut written = Vec::new();
        while written != b"one\ntwo\n" {
            written.extend(told.recv_timeout(Duration::from_secs(20)).unwrap());
        }
    }

    #[test]
    fn a_line_that_cannot_wait_takes_along_what_came_before_it() {
        let (lines, told) = lines();
        lines.add(b"patient\n", true).unwrap();
        lines.add(b"urgent\n", false).unwrap();
        let written = told.try_iter().flatten().collect::<Vec<_>>();
        assert_eq!(written, b"patient\nurgent\n");
    }

    /// Has room for so many bytes at first, and is told of more later.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let (written, room) = &mut *self.0.lock().unwrap();
            let fits = text.len().min(*room);
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.extend_from_slice(&text[..fits]);
            *room -= fits;
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_cut_by_a_full_disk_spoils_no_other() {
        let disk = Disk(Arc::new(Mutex::new((Vec::new(), 10))));
        let lines = Lines::to(disk.clone());
        lines.add(b"first\n", false).unwrap();
        lines.add(b"second\n", false).unwrap_err();
        lines.add(b"third\n", false).unwrap_err();
        disk.0.lock().unwrap().1 = 100;
        lines.add(b"fourth\n", false).unwrap();
        lines.add(b"fifth\n", false).unwrap();
        assert_eq!(disk.0.lock().unwrap().0, b"first\nseco\nfourth\nfifth\n");
    }

    #[test]
    fn nothing_is_lost_or_torn_however_much_there_is() {
        let (lines, told) = lines();
        let line = |n: usize| format!("{n} {}\n", "x".repeat(n % 6000));
        let expected = (0..400).map(line).collect::<String>();
        for n in 0..400 {
            lines.add(line(n).as_bytes(), true).unwrap();
        }
        lines.write_out().unwrap();
        let written = told.try_iter().collect::<Vec<_>>();
        assert!(written.iter().all(|write| write.ends_with(b"\n")));
        assert_eq!(written.concat(), expected.as_bytes());
    }

    #[test]
    fn what_is_written_at_once_is_whole_lines_that_a_pipe_takes_as_a_whole() {
        let long = format!("{}\nnext\n", "x".repeat(2 * WHOLE));
        assert_eq!(whole_lines(long.as_bytes()), 2 * WHOLE + 1);
        assert_eq!(whole_lines(b"short\nshort\n"), 12);
        assert_eq!(whole_lines("0123456\n".repeat(1_000).as_bytes()), WHOLE);
        assert_eq!(whole_lines("01234567\n".repeat(1_000).as_bytes()), 4095);
        assert_eq!(whole_lines(&[b'x'; WHOLE]), WHOLE);
    }
}
