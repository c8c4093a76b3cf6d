"""What has to survive a restart: tokens, the subscription, events taken, orders to look at, parcels under way.

A file of SQLite for each seller.
"""

import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

# A delivery comes again for 15 hours at most; two days are on the safe side.
EVENTS_ARE_KEPT = 2 * 24 * 3600

# More ids are refused.
ORDERS_AT_ONCE = 100

TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, taken_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS work (order_id TEXT PRIMARY KEY, due_at REAL NOT NULL, round INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS parcels (order_id TEXT PRIMARY KEY, idempotency_key TEXT NOT NULL, body BLOB NOT NULL);
"""


@dataclass(frozen=True)
class Task:
    order_id: str
    # Grows whenever something new is heard of the order.
    round: int


@dataclass(frozen=True)
class Parcel:
    order_id: str
    idempotency_key: str
    body: bytes


class Store:
    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(TABLES)
        self._lock = threading.RLock()
        self._news = threading.Condition(self._lock)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    # Facts

    def fact(self, name: str) -> str | None:
        with self._lock:
            row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def remember(self, **facts: str | None) -> None:
        """Notes all of the facts, or none; None forgets one."""
        with self._transaction() as database:
            for name, value in facts.items():
                self._note(database, name, value)

    @staticmethod
    def _note(database: sqlite3.Connection, name: str, value: str | None) -> None:
        database.execute("DELETE FROM facts WHERE name = ?", (name,))
        if value is not None:
            database.execute("INSERT INTO facts VALUES (?, ?)", (name, value))

    # Events and the work they make

    def take(self, events: list[tuple[str, str | None]], cursor: str | None = None) -> int:
        """Notes events by their ids, together with the orders that they make work of; returns how many were new."""
        found = 0
        with self._transaction() as database:
            now = time.time()
            for event_id, order_id in events:
                added = database.execute("INSERT INTO events VALUES (?, ?) ON CONFLICT DO NOTHING", (event_id, now))
                found += added.rowcount
                if added.rowcount and order_id is not None:
                    self._add(database, order_id)
            database.execute("DELETE FROM events WHERE taken_at < ?", (now - EVENTS_ARE_KEPT,))
            if cursor is not None:
                self._note(database, "cursor", cursor)
        return found

    def look_at(self, order_ids: list[str], cursor: str) -> None:
        with self._transaction() as database:
            for order_id in order_ids:
                self._add(database, order_id)
            self._note(database, "cursor", cursor)

    def _add(self, database: sqlite3.Connection, order_id: str) -> None:
        database.execute(
            "INSERT INTO work (order_id, due_at) VALUES (?, ?)"
            " ON CONFLICT (order_id) DO UPDATE SET due_at = excluded.due_at, round = round + 1",
            (order_id, time.time()),
        )
        self._news.notify()

    def next_tasks(self) -> list[Task]:
        """Waits until there are tasks that are due."""
        query = f"SELECT order_id, round, due_at FROM work ORDER BY due_at LIMIT {ORDERS_AT_ONCE}"
        with self._news:
            while True:
                rows, now = self._database.execute(query).fetchall(), time.time()
                due = [Task(order_id, round) for order_id, round, due_at in rows if due_at <= now]
                if due:
                    return due
                self._news.wait(rows[0][2] - now if rows else None)

    def done(self, task: Task) -> None:
        """The task is over, unless the order was heard of again meanwhile."""
        with self._transaction() as database:
            database.execute("DELETE FROM work WHERE order_id = ? AND round = ?", (task.order_id, task.round))

    def put_off(self, task: Task, seconds: float) -> None:
        with self._transaction() as database:
            database.execute(
                "UPDATE work SET due_at = ? WHERE order_id = ? AND round = ?",
                (time.time() + seconds, task.order_id, task.round),
            )

    # Parcels

    def parcel(self, order_id: str) -> Parcel | None:
        with self._lock:
            row = self._database.execute("SELECT * FROM parcels WHERE order_id = ?", (order_id,)).fetchone()
        return Parcel(*row) if row else None

    def keep(self, parcel: Parcel) -> None:
        with self._transaction() as database:
            database.execute("INSERT INTO parcels VALUES (?, ?, ?)", (parcel.order_id, parcel.idempotency_key, parcel.body))

    def forget(self, order_id: str) -> None:
        with self._transaction() as database:
            database.execute("DELETE FROM parcels WHERE order_id = ?", (order_id,))
