/** The subscription to webhooks: made once, found again after a restart. */

import { randomUUID } from "node:crypto";
import type { Api, Webhook } from "./api.js";
import { log } from "./log.js";
import type { Store } from "./store.js";

const EVENTS = ["order.paid", "order.cancelled", "order.delivered"];

/** Sees to it that there is an active subscription whose secret is known. */
export async function ensureSubscription(api: Api, store: Store, url: string): Promise<void> {
  const mine = store.facts.subscription;
  if (mine) {
    const { items } = await api.get<{ items: Webhook[] }>("/v1/webhooks");
    const hook = items.find(({ id }) => id === mine.id);
    if (hook?.active && hook.url === url) return;
    // It ended with a connection, or leads elsewhere: it takes one of twenty places.
    if (hook) await api.delete(`/v1/webhooks/${hook.id}`);
  }
  // The secret is in this one answer. Under a key that is kept, a lost answer can be asked for again.
  const body = JSON.stringify({ url, events: EVENTS });
  const kept = store.facts.subscribing;
  const subscribing = kept?.body === body ? kept : { idempotencyKey: randomUUID(), body };
  store.remember({ subscribing });
  const made = await api.write<Webhook & { secret: string }>("/v1/webhooks", subscribing);
  store.remember({ subscription: { id: made.id, secret: made.secret }, subscribing: undefined });
  log.info(`subscribed ${made.id}`);
}
