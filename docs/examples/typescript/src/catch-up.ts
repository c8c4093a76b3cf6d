/** Finds what no webhook told of: the receiver was away for longer than deliveries are repeated, or was not there yet. */

import { type Api, type Journal, type Order, Refused } from "./api.js";
import { log } from "./log.js";
import type { Store } from "./store.js";

/** Has the orders looked at of which the journal has events that no webhook told of. */
export async function catchUp(api: Api, store: Store): Promise<void> {
  let { cursor } = store.facts;
  let [found, hasMore] = [0, true];
  while (hasMore) {
    if (cursor === undefined) return begin(api, store);
    try {
      const page: Journal = await api.get<Journal>(`/v1/events?limit=200&after=${encodeURIComponent(cursor)}`);
      found += store.take(page.items.map((event) => [event.id, event.data.order_id]), page.cursor);
      [cursor, hasMore] = [page.cursor, page.has_more];
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 400) throw error;
      // The program was away for longer than events are kept, or the marketplace has lost the last ones.
      log.warn(`the journal has a gap: ${error.message}`);
      cursor = undefined;
    }
  }
  log.info(`caught up: ${found} events`);
}

/** Has all orders looked at that are to be shipped; from now on the journal tells. */
async function begin(api: Api, store: Store): Promise<void> {
  // The end of the journal, asked for before the orders, so that nothing is between the two.
  const { cursor } = await api.get<Journal>("/v1/events?since=2100-01-01T00:00:00Z");
  const found: string[] = [];
  for await (const order of api.items<Order>("/v1/orders", { status: "processing", fields: "status", limit: "200" })) {
    found.push(order.id);
  }
  store.lookAt(found, cursor);
  log.info(`caught up: ${found.length} orders to look at`);
}
