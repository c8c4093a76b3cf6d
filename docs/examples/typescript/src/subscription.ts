/** The subscription to webhooks: made once, found again after a restart. */

import { randomUUID } from "node:crypto";
import type { Api, Webhook } from "./api.js";
import { log } from "./log.js";
import type { Store } from "./store.js";

const EVENTS = ["order.paid", "order.cancelled", "order.delivered"];

/** Sees to it that there is an active subscription whose secret is known. */
export async function ensureSubscription(api: Api, store: Store, url: string): Promise<void> {
  const mine = store.facts.subscription?.id;
  const { items } = await api.get<{ items: Webhook[] }>("/v1/webhooks");
  let isThere = false;
  for (const hook of items) {
    if (hook.id === mine && hook.active && hook.url === url) isThere = true;
    // It ended with a connection, leads elsewhere, or its secret was in an answer that got lost: it takes one of twenty places.
    else if (hook.id === mine || hook.url === url) await api.delete(`/v1/webhooks/${hook.id}`);
  }
  if (isThere) return;
  // The secret is in this one answer. After a crash the subscription is replaced: a repeat under its key would tell the secret, but not
  // whether the subscription is still there.
  const write = { idempotencyKey: randomUUID(), body: JSON.stringify({ url, events: EVENTS }) };
  const made = await api.write<Webhook & { secret: string }>("/v1/webhooks", write);
  store.remember({ subscription: { id: made.id, secret: made.secret } });
  log.info(`subscribed ${made.id}`);
}
