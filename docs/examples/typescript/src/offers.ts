/** Prices and stock: the company's changes are sent in batches, in their order. */

import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { type Api, Refused } from "./api.js";
import { log } from "./log.js";
import { Unavailable } from "./sending.js";
import type { Batch, Store } from "./store.js";

/** More items are refused. */
const ITEMS_AT_ONCE = 100;
/** A body of more than 64 KiB is refused. */
const BYTES_AT_ONCE = 60_000;
/** A key is known for a day. Later, a repeat would be done again. */
const KEY_LIVES = 23 * 3600_000;

interface Change {
  readonly id: string;
  readonly stock?: number;
  readonly stock_adjustment?: number;
  readonly if_match?: string;
}

interface Done {
  readonly id: string;
  readonly http_status: number;
  readonly errors: { readonly code: string }[] | null;
}

/**
 * Sends what the company's system has appended to a file: in each line an item of a batch.
 *
 * `{"id": "…", "price": {"amount": 3900, "currency": "PLN"}}` sets a price, whatever it was. `{"id": "…", "stock_adjustment": -2}`
 * takes away what was sold in the shop: orders take stock at the same time, and no change gets lost. Where less is left you have
 * oversold: the stock becomes 0 at once, and somebody has to settle the orders. If you count what is there instead, send `stock` with
 * `if_match`, the `etag` from before the count: it is 412 if an order has come, and you count again.
 */
export async function sendChanges(api: Api, store: Store, file: string): Promise<void> {
  for (;;) {
    const batch = store.facts.batch ?? nextBatch(store, file);
    if (batch === undefined) return;
    if (Date.now() > batch.madeAt + KEY_LIVES) {
      // Somebody has to stop this program, compare the stock with what is there, and delete the batch from the store. If it was done,
      // `changesDone` becomes its `end`, or its lines are sent once more.
      throw new Unavailable(`nobody can tell whether this batch was done: ${JSON.stringify(batch)}`);
    }
    const { items } = await api.write<{ items: Done[] }>("/v1/offers/batch?fields=stock", batch).catch((error: unknown) => {
      if (error instanceof Refused && error.status === 400 && error.paths.some((path) => path.startsWith("items"))) {
        // Something in the file is wrong, so that these bytes were never done. When it is right it is read again. Any other 400 says
        // nothing about an earlier request with the key.
        store.remember({ batch: undefined });
      }
      throw error;
    });
    const changes = (JSON.parse(batch.body) as { items: Change[] }).items;
    const oversold: Change[] = [];
    for (const [index, item] of items.entries()) {
      if (item.http_status === 200) continue;
      log.error(`offer ${item.id} was not changed: ${JSON.stringify(item.errors)}`);
      const codes = item.errors?.map((error) => error.code) ?? [];
      const { stock_adjustment, if_match, ...others } = changes[index] ?? { id: item.id };
      if (codes.includes("stock_out_of_range") && (stock_adjustment ?? 0) < 0) {
        // The item's other changes, such as a price, were not made either. They are made now, unless one of them was refused too.
        // Cancelling the orders that cannot be met gives back all their pieces: then the counted stock has to be sent.
        oversold.push({ ...(codes.length > 1 ? { id: item.id } : others), stock: 0 });
      }
    }
    store.remember({ batch: newBatch(oversold, batch.end), changesDone: batch.end });
    log.info(`${items.length} changes of offers were sent`);
  }
}

/** The lines that follow, stored with a key before they are sent; undefined if there are none. */
function nextBatch(store: Store, file: string): Batch | undefined {
  if (!existsSync(file)) return undefined;
  const begin = store.facts.changesDone ?? 0;
  let end = begin;
  const items = new Map<string, Change>();
  const content = readFileSync(file);
  // To begin a new file, stop this program, see that everything was sent, and delete `changesDone` from the store.
  if (content.length < end) throw new Unavailable(`${file} is shorter than what was sent of it`);
  // The last line may not be whole yet.
  const lines = content.subarray(end).toString("utf8").split("\n").slice(0, -1);
  for (const line of lines.slice(0, ITEMS_AT_ONCE)) {
    const length = Buffer.byteLength(line) + 1;
    const item = changeIn(line);
    if (item === undefined) {
      if (items.size === 0) throw new Unavailable(`${file} has no change of an offer at byte ${end}`);
      break; // What stands before it is sent.
    }
    // Another change of an offer belongs to the next batch.
    if (items.has(item.id)) break;
    if (items.size > 0 && end + length - begin > BYTES_AT_ONCE) break;
    items.set(item.id, item);
    end += length;
  }
  const batch = newBatch([...items.values()], end);
  if (batch) store.remember({ batch });
  return batch;
}

function changeIn(line: string): Change | undefined {
  try {
    const item = JSON.parse(line) as Partial<Change> | null;
    return typeof item?.id === "string" ? (item as Change) : undefined;
  } catch {
    return undefined;
  }
}

/** A batch with its key; undefined without items. */
function newBatch(items: Change[], end: number): Batch | undefined {
  if (items.length === 0) return undefined;
  return { idempotencyKey: randomUUID(), body: JSON.stringify({ items }), madeAt: Date.now(), end };
}
