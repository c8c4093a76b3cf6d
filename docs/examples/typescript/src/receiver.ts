/** The receiver of webhooks: verifies, stores, answers. The work is done elsewhere. */

import { createHmac, timingSafeEqual } from "node:crypto";
import { type IncomingMessage, type Server, createServer } from "node:http";
import { log, seller } from "./log.js";
import type { Store } from "./store.js";

const LARGEST_BODY = 64 * 1024;
/** In seconds. */
const CLOCK_DIFFERENCE = 5 * 60;

/** The sellers of whom the last delivery was rejected. Only the first of a row is logged: strangers could send many. */
const rejected = new Set<string>();

interface Delivery {
  readonly id: string;
  readonly event: string;
  /** Events and fields may be added: what has no order is taken and left alone. A test event's order exists nowhere. */
  readonly data: { readonly event_id?: string; readonly order_id?: string; readonly test?: boolean };
}

/** Verifies both signatures over the bytes as they came: JSON that was parsed and printed again is other bytes. */
function isGenuine(secret: string, headers: Headers, body: Buffer): boolean {
  const own = "sha256=" + createHmac("sha256", secret).update(body).digest("hex");
  return isEqual(own, headers.get("X-Signature") ?? "") && isOfNow(secret, headers, body);
}

/** Verifies the signature of Standard Webhooks. It covers the time, so that nobody can repeat a delivery later. */
function isOfNow(secret: string, headers: Headers, body: Buffer): boolean {
  const [given, sentAt] = [headers.get("webhook-signature") ?? "", headers.get("webhook-timestamp") ?? ""];
  if (!/^\d+$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > CLOCK_DIFFERENCE) return false;
  const signing = createHmac("sha256", secret).update(`${headers.get("webhook-id")}.${sentAt}.`).update(body);
  const expected = "v1," + signing.digest("base64");
  // While a secret is replaced there is one signature for each.
  return given.split(" ").some((signature) => isEqual(expected, signature));
}

/** Takes as long whatever is given, which tells nothing of what is expected. */
function isEqual(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export function listen(port: number, stores: Map<string, Store>): Server {
  const server = createServer((request, response) => {
    receive(request, stores)
      .catch((error: unknown) => {
        log.error(`a delivery was not taken: ${String(error)}`);
        return 500;
      })
      .then((status) => response.writeHead(status, { Connection: "close" }).end());
  });
  // Whoever is slower than this is no marketplace.
  server.requestTimeout = 10_000;
  return server.listen(port, "127.0.0.1");
}

/** The status to answer. */
async function receive(request: IncomingMessage, stores: Map<string, Store>): Promise<number> {
  // Each seller's subscription has a path and a secret of its own.
  const name = request.url?.split("/").at(-1) ?? "";
  const store = stores.get(name);
  if (store === undefined) return 404;
  const body = await rawBody(request);
  if (body === undefined) return 413;
  const secret = store.facts.subscription?.secret;
  if (secret === undefined) return 503;
  if (!isGenuine(secret, new Headers(request.headers as Record<string, string>), body)) {
    if (!rejected.has(name)) seller.run(name, () => log.warn("a delivery was rejected: its signature is wrong, or a clock"));
    rejected.add(name);
    return 401;
  }
  rejected.delete(name);
  const { id, event, data } = JSON.parse(body.toString("utf8")) as Delivery;
  const isNew = store.take([[data.event_id ?? id, data.test ? undefined : data.order_id]]);
  seller.run(name, () => log.info(`${event} ${isNew ? "came" : "came again"} of ${data.order_id}`));
  return 204;
}

async function rawBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LARGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
