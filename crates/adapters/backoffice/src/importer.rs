//! The streaming import of offers: NDJSON of any size in bounded memory, in chunks that are one transaction each.
//!
//! While one chunk is being written, the next is read. Never more than these two are held, and what is held of one is
//! bounded in lines and in bytes.

mod lines;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use kernel::SellerId;
use offers::OfferFeed;
use thiserror::Error;
use usecases::feed_offers::{CHUNK, Counts, import_offers};
use usecases::{Transaction, UnitOfWork, UnitOfWorkError, Work, transact};
use web::{Entry, TaskPanicked, Tasks, decode};

pub use report::{ImportReport, RejectedLine};

use crate::offers::import_line;
use lines::{LONGEST_LINE, Line, Lines};

/// A chunk is full with this many bytes of lines too, in case they are long.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Feeds the offers of one existing seller, line by line (D100).
///
/// Bytes go in with [`Importer::feed`], cut anywhere; [`Importer::finish`] gives the report. Dropped before, it leaves the
/// chunks that are complete, one that is being written included, and nothing of the next. After an error it is of no use
/// any more; the same input may be sent again from its start.
pub struct Importer {
    units: Arc<dyn UnitOfWork>,
    tasks: Tasks,
    seller: SellerId,
    lines: Lines,
    chunk: Chunk,
    writing: Option<BoxFuture<'static, Written>>,
    report: ImportReport,
}

/// Why an import ends early. Some chunk may not have been written; those before it have.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] UnitOfWorkError),
    /// The writing of a chunk panicked.
    #[error(transparent)]
    Panicked(#[from] TaskPanicked),
}

type Written = Result<Result<Counts, UnitOfWorkError>, TaskPanicked>;

impl Importer {
    /// An import that writes through `units`, in tasks of `tasks`.
    pub fn new(units: Arc<dyn UnitOfWork>, tasks: Tasks, seller: SellerId) -> Self {
        Self {
            units,
            tasks,
            seller,
            lines: Lines::default(),
            chunk: Chunk::default(),
            writing: None,
            report: ImportReport::default(),
        }
    }

    /// Takes the next piece of the input. Waits while the store is slower than the input.
    pub async fn feed(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let mut rest = bytes;
        while let Some(line) = self.lines.next(&mut rest) {
            self.chunk.take(line, &mut self.report);
            if self.chunk.is_full() {
                self.write_chunk().await?;
            }
        }
        Ok(())
    }

    /// Takes the end of the input, and waits until all of it is written.
    pub async fn finish(mut self) -> Result<ImportReport, ImportError> {
        if let Some(line) = self.lines.last() {
            self.chunk.take(line, &mut self.report);
        }
        self.write_chunk().await?;
        self.written().await?;
        Ok(self.report)
    }

    /// How many lines have been read, blank and rejected ones included.
    pub fn lines_read(&self) -> u64 {
        self.lines.ended()
    }

    /// What is known so far; the chunks under way are not counted yet.
    pub fn so_far(&self) -> &ImportReport {
        &self.report
    }

    /// Begins to write what has gathered, once the chunk before it is written: of two lines with the same id the later
    /// one wins.
    async fn write_chunk(&mut self) -> Result<(), ImportError> {
        self.written().await?;
        let chunk = std::mem::take(&mut self.chunk);
        if !chunk.feeds.is_empty() {
            let (units, work) = (Arc::clone(&self.units), chunk.of(self.seller));
            let writing = self
                .tasks
                .run(async move { transact(units.as_ref(), &work).await });
            self.writing = Some(Box::pin(writing));
        }
        Ok(())
    }

    async fn written(&mut self) -> Result<(), ImportError> {
        if let Some(writing) = self.writing.take() {
            self.report.add(writing.await??);
        }
        Ok(())
    }
}

/// The offers of the lines that have gathered.
#[derive(Default)]
struct Chunk {
    feeds: Vec<OfferFeed>,
    bytes: usize,
}

impl Chunk {
    fn take(&mut self, line: Line<'_>, report: &mut ImportReport) {
        let Some(text) = line.text else {
            let message = format!("The line is longer than {} KiB.", LONGEST_LINE / 1024);
            return report.reject(line.number, Entry::whole(message));
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        match decode::body(text, &import_line()) {
            Ok(feed) => {
                self.feeds.push(feed);
                self.bytes += text.len();
            }
            Err(violations) => report.reject(line.number, violations),
        }
    }

    fn is_full(&self) -> bool {
        self.feeds.len() >= CHUNK || self.bytes >= MOST_BYTES
    }

    fn of(self, seller: SellerId) -> WriteChunk {
        WriteChunk {
            seller,
            feeds: self.feeds,
        }
    }
}

struct WriteChunk {
    seller: SellerId,
    feeds: Vec<OfferFeed>,
}

#[async_trait]
impl Work for WriteChunk {
    type Done = Counts;
    type Error = UnitOfWorkError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<Counts, UnitOfWorkError> {
        let now = transaction.now();
        Ok(import_offers(transaction, self.seller, &self.feeds, now).await?)
    }
}
