/** Finds what no webhook told of: the receiver was away for longer than deliveries are repeated, or was not there yet. */

import type { Api } from "./api.js";
import { log } from "./log.js";
import type { Store } from "./store.js";

/** A change becomes visible a moment after the time it is noted with. In milliseconds. */
const OVERLAP = 60_000;

/** Reads the orders that have changed since the last reading, and has those looked at that are to be shipped. */
export async function catchUp(api: Api, store: Store): Promise<void> {
  const since = store.facts.caughtUpTo;
  const query = { status: "processing", fields: "status", limit: "200", ...(since && { updated_after: since }) };
  const found: string[] = [];
  let begun: Date | undefined;
  for await (const page of api.pages<{ id: string }>("/v1/orders", query)) {
    // By the service's clock, not by this machine's. What changes while the pages are read is found by the next reading.
    begun ??= page.answeredAt;
    found.push(...page.items.map((order) => order.id));
  }
  store.lookAt(found);
  // Only now: if the reading breaks off, the next one begins where this one did.
  if (begun) store.remember({ caughtUpTo: new Date(begun.getTime() - OVERLAP).toISOString() });
  log.info(`caught up: ${found.length} orders to look at`);
}
