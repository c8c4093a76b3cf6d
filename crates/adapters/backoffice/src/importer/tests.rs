//! Imports lines and checks report and rows, however the input is split.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use kernel::{OfferId, StoreError, TransactionError};
use offers::Offer;
use proptest::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use usecases::{LockSet, MockTransaction, Transaction, Turn};
use uuid::Uuid;

use super::*;

/// The offers of one seller in memory. Clones share them.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Rows>>);

#[derive(Clone, Default)]
struct Rows {
    offers: BTreeMap<OfferId, Offer>,
    /// The number of offers that each transaction has saved.
    saved: Vec<usize>,
    away: bool,
}

impl Store {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap()
    }
}

#[async_trait]
impl UnitOfWork for Store {
    async fn begin_within(&self, _: &LockSet, _: Duration) -> Result<Box<dyn Transaction>, StoreError> {
        if self.rows().away {
            return Err(StoreError::Unavailable("connection refused".into()));
        }
        let mine = Arc::new(Mutex::new(self.rows().clone()));
        let mut tx = MockTransaction::new();
        tx.expect_now().returning(DateTime::default);
        let rows = Arc::clone(&mine);
        tx.expect_lock_offers().returning(move |_, ids| {
            let rows = rows.lock().unwrap();
            Ok(ids.iter().filter_map(|id| rows.offers.get(id).cloned()).collect())
        });
        let rows = Arc::clone(&mine);
        tx.expect_save_fed_offers().returning(move |_, changes| {
            let mut rows = rows.lock().unwrap();
            rows.saved.push(changes.len());
            rows.offers
                .extend(changes.into_iter().map(|change| (change.after.id, change.after)));
            Ok(())
        });
        let all = self.clone();
        tx.expect_commit().returning(move || {
            *all.rows() = mine.lock().unwrap().clone();
            Ok(())
        });
        Ok(Box::new(tx))
    }

    async fn turn(&self, _: &LockSet, _: Duration) -> Result<Turn, StoreError> {
        Ok(Turn::new(()))
    }
}

fn seller() -> SellerId {
    Uuid::from_u128(1).into()
}

fn line(id: u128, title: &str) -> String {
    let id = Uuid::from_u128(id);
    format!(
        r#"{{"id":"{id}","title":"{title}","handle":"h","status":"draft","url":"https://shop.example/h"}}"#
    )
}

fn importer(units: &Arc<impl UnitOfWork + 'static>) -> Importer {
    let places = Arc::new(Semaphore::new(1));
    Importer::new(units.clone(), places, Tasks::new(Handle::current()), seller())
}

/// Imports an input that arrives in these pieces; returns the report and the titles by id.
async fn import(pieces: impl IntoIterator<Item = &[u8]>) -> (ImportReport, Vec<(u128, String)>) {
    let store = Arc::new(Store::default());
    let mut importer = importer(&store);
    for piece in pieces {
        importer.feed(piece).await.unwrap();
    }
    let report = importer.finish().await.unwrap();
    let rows = store.rows();
    let titles = rows
        .offers
        .iter()
        .map(|(id, offer)| (id.uuid().as_u128(), offer.product.title.clone()));
    (report, titles.collect())
}

async fn whole(input: &str) -> (ImportReport, Vec<(u128, String)>) {
    import([input.as_bytes()]).await
}

/// Numbers of created, updated and unchanged offers, and the numbers of the rejected lines.
fn counts(report: &ImportReport) -> (u64, u64, u64, Vec<u64>) {
    let rejected: Vec<_> = report.rejected.iter().map(|rejected| rejected.line).collect();
    assert_eq!(report.rejected_total, u64::try_from(rejected.len()).unwrap());
    (report.created, report.updated, report.unchanged, rejected)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[tokio::test]
async fn the_later_line_of_an_id_wins_across_chunks() {
    let mut lines = vec![line(7, "first")];
    lines.extend((0..CHUNK).map(|n| line(1_000 + u128::try_from(n).unwrap(), "x")));
    lines.extend(["second", "third", "third"].map(|title| line(7, title)));
    let input = lines.join("\n");
    let (report, titles) = whole(&input).await;
    assert_eq!(counts(&report), (1_001, 2, 1, vec![]));
    assert_eq!(titles.first(), Some(&(7, "third".to_owned())));
}

#[tokio::test]
async fn rejected_offers_fill_a_chunk_sooner() {
    let store = Arc::new(Store::default());
    let mut importer = importer(&store);
    let rejected = (1..=u128::try_from(2 * CHUNK_OF_REJECTED).unwrap())
        .map(|n| line(n, "x").replace("draft", "rejected") + "\n");
    importer
        .feed(rejected.collect::<String>().as_bytes())
        .await
        .unwrap();
    importer.finish().await.unwrap();
    assert_eq!(store.rows().saved, [CHUNK_OF_REJECTED; 2]);
}

#[tokio::test]
async fn long_lines_fill_a_chunk_by_their_bytes() {
    let url = format!("https://shop.example/{}", "x".repeat(2_000));
    let padding = " ".repeat(60_000);
    let store = Arc::new(Store::default());
    let mut importer = importer(&store);
    for n in 0..80 {
        let line = line(n, "x").replace("https://shop.example/h", &url);
        importer
            .feed(format!("{padding}{line}\n").as_bytes())
            .await
            .unwrap();
    }
    importer.finish().await.unwrap();
    assert_eq!(store.rows().saved, [34, 34, 12]);
}

#[tokio::test]
async fn the_line_limit_does_not_count_the_line_ending() {
    for end in ["", "\n", "\r\n", "\nx", "\r"] {
        for (length, fits) in [
            (MAX_LINE_LENGTH, true),
            (MAX_LINE_LENGTH + 1, false),
            (MAX_LINE_LENGTH * 3, false),
        ] {
            let input = format!("{}{end}", "x".repeat(length));
            for size in [7, 4096, input.len()] {
                let (report, _) = import(input.as_bytes().chunks(size)).await;
                let is_long = report.rejected[0].errors[0].message() == "The line is longer than 64 KiB.";
                assert_eq!(is_long, !fits, "{length} {end:?} {size}");
                let lines: Vec<_> = report.rejected.iter().map(|rejected| rejected.line).collect();
                let expected: &[u64] = if end.ends_with('x') { &[1, 2] } else { &[1] };
                assert_eq!(lines, expected);
            }
        }
    }
}

#[tokio::test]
async fn at_most_one_line_is_buffered() {
    let mut importer = importer(&Arc::new(Store::default()));
    for _ in 0..1_000 {
        importer.feed(&[b'x'; 4096]).await.unwrap();
        assert!(importer.unread.capacity() <= 4 * MAX_LINE_LENGTH);
    }
}

fn some_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0_u128..4, "[abż😀]").prop_map(|(id, title)| line(id, &title)),
        1 => Just(String::new()),
        1 => "[ \t]{1,3}",
        1 => "[{}\"a-c:,0-9]{1,9}",
    ]
}

proptest! {
    #[test]
    fn each_line_counts_once_and_the_last_valid_one_of_an_id_is_stored(
        lines in prop::collection::vec((some_line(), prop::sample::select(vec!["\n", "\r\n"])), 0..30),
        size in 1_usize..200,
    ) {
        let input: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        let (report, titles) = runtime().block_on(import(input.as_bytes().chunks(size)));
        let mut expected = std::collections::BTreeMap::new();
        let (mut good, mut blank) = (0, 0);
        for (line, _) in &lines {
            match decode::body(line.as_bytes(), &offer_input(None)) {
                Ok(feed) => {
                    good += 1;
                    expected.insert(feed.id.uuid().as_u128(), feed.product.title);
                }
                Err(_) if line.trim().is_empty() => blank += 1,
                Err(_) => {}
            }
        }
        let total = u64::try_from(lines.len()).unwrap();
        prop_assert_eq!(report.created + report.updated + report.unchanged, good);
        prop_assert_eq!(report.created, u64::try_from(expected.len()).unwrap());
        prop_assert_eq!(report.rejected_total, total - good - blank);
        prop_assert_eq!(titles, expected.into_iter().collect::<Vec<_>>());
    }
}

fn chunks(count: usize) -> String {
    let lines = 0..u128::try_from(CHUNK * count).unwrap();
    lines.map(|n| line(n, "x") + "\n").collect()
}

#[tokio::test]
async fn a_failing_store_ends_the_import_and_keeps_the_written_chunks() {
    let store = Arc::new(Store::default());
    let mut importer = importer(&store);
    importer.feed(chunks(1).as_bytes()).await.unwrap();
    importer.feed(line(99_999, "y").as_bytes()).await.unwrap();
    while store.rows().saved.is_empty() {
        tokio::task::yield_now().await;
    }
    store.rows().away = true;
    let error = importer.finish().await.unwrap_err();
    assert!(matches!(
        error,
        TransactionError::Store(StoreError::Unavailable(_))
    ));
    assert_eq!(store.rows().saved, [CHUNK]);
}
