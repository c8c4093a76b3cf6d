/** Calls to /v1 with a token. */

import { type Answer, type Outgoing, errorCodes, errorPaths, send } from "./sending.js";
import type { Write } from "./store.js";
import type { Tokens } from "./tokens.js";

/** The fields of an order that this program reads; others are ignored, as those that are yet to come. */
export interface Order {
  readonly id: string;
  readonly order_number: string;
  /** More may come: what is not `processing` is not to be shipped. */
  readonly status: string;
  readonly shipped_by: string;
  readonly shipment: { readonly tracking_number: string } | null;
}

export interface Shipment {
  readonly carrier_name: string;
  readonly tracking_number: string;
}

export interface Webhook {
  readonly id: string;
  readonly url: string;
  readonly active: boolean;
}

interface Page<Item> {
  readonly items: Item[];
  readonly next: string | null;
}

/** A page of the journal. */
export interface Journal {
  readonly items: Event[];
  readonly cursor: string;
  readonly has_more: boolean;
}

interface Event {
  readonly id: string;
  readonly data: { readonly order_id?: string };
}

/** An answer that this program has no use for. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string | undefined;
  /** The fields of the request that are wrong. */
  readonly paths: string[];

  constructor(answer: Answer) {
    // With its trace id somebody at the marketplace can find the request.
    super(`${answer.status} ${JSON.stringify(answer.body)}`);
    this.status = answer.status;
    this.code = errorCodes(answer)[0];
    this.paths = errorPaths(answer);
  }
}

export class Api {
  readonly #baseUrl: string;
  readonly #tokens: Tokens;

  constructor(baseUrl: string, tokens: Tokens) {
    this.#baseUrl = baseUrl;
    this.#tokens = tokens;
  }

  async get<Body>(path: string): Promise<Body> {
    return (await this.#call({ method: "GET", url: this.#baseUrl + path, headers: {} })).body as Body;
  }

  /** A POST that is done once, however often it is sent. */
  async write<Body>(path: string, write: Write): Promise<Body> {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": write.idempotencyKey };
    return (await this.#call({ method: "POST", url: this.#baseUrl + path, headers, body: write.body })).body as Body;
  }

  async delete(path: string): Promise<void> {
    await this.#call({ method: "DELETE", url: this.#baseUrl + path, headers: {} }).catch((error: unknown) => {
      // A repeat, after a lost answer, finds nothing.
      if (!(error instanceof Refused && error.status === 404)) throw error;
    });
  }

  /** The items of a list, page by page. */
  async *items<Item>(path: string, query: Record<string, string>): AsyncGenerator<Item> {
    let after: string | null = null;
    do {
      const parameters = new URLSearchParams(after === null ? query : { ...query, after });
      const page: Page<Item> = await this.get<Page<Item>>(`${path}?${parameters.toString()}`);
      yield* page.items;
      after = page.next;
    } while (after !== null);
  }

  async #call(request: Outgoing): Promise<Answer> {
    const token = await this.#tokens.current();
    let answer = await send(withToken(request, token));
    if (answer.status === 401) {
      // It was revoked, or ended early. Once: if the new one is refused too, more tokens do not help.
      answer = await send(withToken(request, await this.#tokens.insteadOf(token)));
    }
    if (answer.status >= 300) throw new Refused(answer);
    return answer;
  }
}

function withToken(request: Outgoing, token: string): Outgoing {
  return { ...request, headers: { ...request.headers, Authorization: `Bearer ${token}` } };
}
