//! The streaming import of offers: NDJSON of any size in bounded memory, in chunks of one transaction each.
//!
//! The next chunk is read while one is being written. At most these two are in memory, and each is limited in
//! lines and in bytes.

mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use kernel::{SellerId, StoreError, TransactionError};
use offers::{OfferInput, OfferStatus};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio_util::codec::{AnyDelimiterCodec, Decoder as _};
use usecases::feed_offers::{CHUNK, CHUNK_OF_REJECTED, Counts, import_offers};
use usecases::{LockSet, UnitOfWork, transact};
use web::resources::offer_input;
use web::{Entry, Panicked, Tasks, decode};

pub use report::{ImportReport, RejectedLine};

/// The longest line, in bytes without its line end.
const MAX_LINE_LENGTH: usize = 64 * 1024;

/// A chunk is also full at this many bytes of lines, in case they are long.
const MAX_CHUNK_SIZE: usize = 2 * 1024 * 1024;

/// Lines that are read before other requests of the thread have their turn.
const LINES_AT_A_TIME: u64 = 100;

/// Imports the offers of one existing seller, line by line (D100).
///
/// [`Importer::feed`] takes bytes, split anywhere; [`Importer::finish`] returns the report. A line ends with LF
/// or CRLF; the last one may lack a line end. If the importer is dropped earlier, chunks that have begun are
/// written, and the rest is discarded. After an error it cannot be used any more: all chunks but
/// perhaps the latest are written, and the same input may be sent again from its start.
pub struct Importer {
    units: Arc<dyn UnitOfWork>,
    /// Limits how many chunks all imports of the process write at a time. Each takes a connection for seconds, and
    /// others need some, too.
    places: Arc<Semaphore>,
    tasks: Tasks,
    seller: SellerId,
    splitter: AnyDelimiterCodec,
    /// What has arrived of a line that has not ended.
    unread: BytesMut,
    lines_read: u64,
    chunk: Chunk,
    writing: Option<BoxFuture<'static, ChunkResult>>,
    report: ImportReport,
}

type ChunkResult = Result<Result<Counts, TransactionError>, Panicked>;

impl Importer {
    /// An import that writes through `units`, in tasks on `tasks`. All imports of a process MUST share their places.
    pub fn new(units: Arc<dyn UnitOfWork>, places: Arc<Semaphore>, tasks: Tasks, seller: SellerId) -> Self {
        Self {
            units,
            places,
            tasks,
            seller,
            // The last byte of the longest line may turn out to be the CR of a CRLF.
            splitter: AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), MAX_LINE_LENGTH + 1),
            unread: BytesMut::new(),
            lines_read: 0,
            chunk: Chunk::default(),
            writing: None,
            report: ImportReport::default(),
        }
    }

    /// Takes the next piece of the input. Waits if the store is slower than the input.
    pub async fn feed(&mut self, bytes: &[u8]) -> Result<(), TransactionError> {
        self.unread.extend_from_slice(bytes);
        while let Some(line) = self.splitter.decode(&mut self.unread).transpose() {
            self.take(line.ok().as_deref());
            if self.chunk.is_full() {
                self.write_chunk().await?;
            }
            if self.lines_read.is_multiple_of(LINES_AT_A_TIME) {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Ends the input, and waits until all of it is written.
    pub async fn finish(mut self) -> Result<ImportReport, TransactionError> {
        while let Some(line) = self.splitter.decode_eof(&mut self.unread).transpose() {
            self.take(line.ok().as_deref());
        }
        self.write_chunk().await?;
        self.written().await?;
        Ok(self.report)
    }

    /// The number of lines read, including blank and rejected ones.
    pub fn lines_read(&self) -> u64 {
        self.lines_read
    }

    /// Takes the next line; None for one that is too long.
    fn take(&mut self, line: Option<&[u8]>) {
        self.lines_read += 1;
        let text = line.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let Some(text) = text.filter(|text| text.len() <= MAX_LINE_LENGTH) else {
            let message = format!("The line is longer than {} KiB.", MAX_LINE_LENGTH / 1024);
            return self.report.reject(self.lines_read, Entry::whole(message));
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        match decode::body(text, &offer_input(None)) {
            Ok(offer) => {
                self.chunk.rejected += usize::from(offer.status == OfferStatus::Rejected);
                self.chunk.offers.push(offer);
                self.chunk.bytes += text.len();
            }
            Err(violations) => self.report.reject(self.lines_read, violations),
        }
    }

    /// Starts to write the collected chunk once the previous one is written, so that of two lines with the
    /// same id the later one wins.
    async fn write_chunk(&mut self) -> Result<(), TransactionError> {
        self.written().await?;
        let chunk = std::mem::take(&mut self.chunk);
        if !chunk.offers.is_empty() {
            let (units, input) = (Arc::clone(&self.units), (self.seller, chunk.offers));
            let offers = input.1.iter().map(|offer| (self.seller, offer.id));
            let locks = LockSet::of_offers(offers).by_marketplace();
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place = place.map_err(StoreError::unexpected)?;
            let writing = self.tasks.run(async move {
                let _place = place;
                transact(units.as_ref(), &locks, &input, |tx, (seller, offers)| {
                    Box::pin(async move { Ok(import_offers(tx, *seller, offers, tx.now()).await?) })
                })
                .await
            });
            self.writing = Some(Box::pin(writing));
        }
        Ok(())
    }

    async fn written(&mut self) -> Result<(), TransactionError> {
        if let Some(writing) = self.writing.take() {
            self.report.add(writing.await.map_err(StoreError::unexpected)??);
        }
        Ok(())
    }
}

/// The offers of the lines collected so far.
#[derive(Default)]
struct Chunk {
    offers: Vec<OfferInput>,
    rejected: usize,
    bytes: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.offers.len() >= CHUNK || self.rejected >= CHUNK_OF_REJECTED || self.bytes >= MAX_CHUNK_SIZE
    }
}
