/** Puts it together: `node dist/main.js`. */

import { Api, Refused } from "./api.js";
import { catchUp } from "./catch-up.js";
import { log } from "./log.js";
import { listen } from "./receiver.js";
import { Unavailable } from "./sending.js";
import { type Settings, fromEnvironment } from "./settings.js";
import { Shipping } from "./shipping.js";
import { Store } from "./store.js";
import { ensureSubscription } from "./subscription.js";
import { Tokens } from "./tokens.js";

/** After this long an order that could not be dealt with is tried again. */
const PAUSE_AFTER_FAILURE = 60_000;

async function run(settings: Settings): Promise<never> {
  const store = new Store(settings.state);
  const api = new Api(settings.apiUrl, new Tokens(settings, store));
  const shipping = new Shipping(api, store);
  // The receiver listens before anybody is asked to send.
  listen(settings.port, store);

  let nextReading = Date.now();
  for (;;) {
    if (Date.now() >= nextReading) {
      const caughtUp = await succeeds("cannot catch up", async () => {
        await ensureSubscription(api, store, settings.webhookUrl);
        await catchUp(api, store);
      });
      nextReading = Date.now() + (caughtUp ? settings.catchUpSeconds * 1000 : PAUSE_AFTER_FAILURE);
    }
    const task = await store.nextTask(nextReading - Date.now());
    if (task === undefined) continue;
    const dealtWith = await succeeds(`order ${task.orderId}`, () => shipping.work(task));
    if (!dealtWith) store.putOff(task, PAUSE_AFTER_FAILURE);
  }
}

/** False after what may be better later; everything else ends the program. */
async function succeeds(what: string, act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof Unavailable || error instanceof Refused)) throw error;
    log.error(`${what}: ${error.message}`);
    return false;
  }
}

// Whatever is under way is found again in the store at the next start.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));

run(fromEnvironment()).catch((error: unknown) => {
  log.error(String(error));
  process.exit(1);
});
