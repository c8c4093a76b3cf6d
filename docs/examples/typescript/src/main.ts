/** Puts it together: `node dist/main.js`. */

import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Api, Refused } from "./api.js";
import { catchUp } from "./catch-up.js";
import { log, seller } from "./log.js";
import { sendChanges } from "./offers.js";
import { listen } from "./receiver.js";
import { PAUSE_AFTER_FAILURE, Unavailable } from "./sending.js";
import { type Settings, fromEnvironment } from "./settings.js";
import { Shipping } from "./shipping.js";
import { Store } from "./store.js";
import { ensureSubscription } from "./subscription.js";
import { NoToken, Tokens } from "./tokens.js";

const CHANGES_PAUSE = 5000;

/** Starts the work for one seller: while it waits, all others go on. */
function workFor(name: string, settings: Settings, store: Store): void {
  const api = new Api(settings.apiUrl, new Tokens(settings, store, settings.sellers[name] ?? null));
  const shipping = new Shipping(api, store);
  void againAndAgain(settings.catchUpSeconds * 1000, async () => {
    try {
      await ensureSubscription(api, store, `${settings.webhookUrl}/${name}`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // Without webhooks the journal tells the same, a little later.
      log.error(`there is no subscription: ${error.message}`);
    }
    await catchUp(api, store);
  });
  void againAndAgain(0, async () => shipping.work(await store.nextTasks()));
  if (settings.changes) void againAndAgain(CHANGES_PAUSE, () => sendChanges(api, store, `${settings.changes}/${name}.jsonl`));
}

async function againAndAgain(pause: number, act: () => Promise<void>): Promise<never> {
  for (;;) {
    try {
      await act();
      await sleep(pause);
    } catch (error) {
      // Trouble of one seller, such as a consent that is over, or a fault of this program: begin again with what the store has.
      const isKnown = error instanceof Unavailable || error instanceof Refused || error instanceof NoToken;
      log.error(isKnown || !(error instanceof Error) ? String(error) : String(error.stack));
      await sleep(PAUSE_AFTER_FAILURE);
    }
  }
}

// Whatever is under way is found again in the store at the next start.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));

const settings = fromEnvironment();
mkdirSync(settings.state, { recursive: true });
const stores = new Map<string, Store>();
for (const name of Object.keys(settings.sellers)) {
  try {
    stores.set(name, new Store(`${settings.state}/${name}.json`));
  } catch (error) {
    log.error(`${name} is left out, because its store cannot be read: ${String(error)}`);
  }
}
if (stores.size === 0) process.exit(1);
// The receiver listens before anybody is asked to send.
listen(settings.port, stores);
for (const [name, store] of stores) seller.run(name, () => workFor(name, settings, store));
