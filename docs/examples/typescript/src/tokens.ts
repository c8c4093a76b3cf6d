/** Access tokens: got once, kept, renewed when they end. */

import { randomUUID } from "node:crypto";
import { log } from "./log.js";
import { type Answer, PAUSE_AFTER_FAILURE, Unavailable, send } from "./sending.js";
import type { Settings } from "./settings.js";
import type { Refresh, Store } from "./store.js";

/** A token is renewed at about half of its 12 hours: if that fails, work goes on with it. */
const MARGIN = 5 * 3600_000;
const SPREAD = 3600_000;
/** It is not used in its last minutes: it would end on its way. */
const LAST_MINUTES = 5 * 60_000;
/**
 * How long a refusal with a `reason` stands: until somebody has looked the answer is the same, and the calls a minute are those of all
 * sellers.
 */
const REFUSED_FOR = 3600_000;
/** How long a refresh can be repeated under its key. Later, a second use ends the consent. */
const FORMER_WORKS = 23 * 3600_000;

/** The credentials are wrong, or the seller's consent is over: somebody has to look. */
export class NoToken extends Error {}

interface TokenResponse {
  access_token: string;
  expires_in: number;
  refresh_token?: string;
}

/** The tokens of one seller. */
export class Tokens {
  readonly #settings: Settings;
  readonly #store: Store;
  /** One refresh at a time. */
  #renewing: Promise<string> | undefined;
  #nextTry = 0;
  #refusal: NoToken | undefined;
  #refusedUntil = 0;
  /** Not for all sellers at once: few calls a minute are allowed. */
  readonly #margin = MARGIN + Math.random() * SPREAD;

  constructor(settings: Settings, store: Store, given: string | null) {
    this.#settings = settings;
    this.#store = store;
    const known = store.facts.refreshGiven;
    if (!given || given === known) return;
    // Of a store that does not know what was given, the token may be a later one.
    const isNew = known !== undefined || !store.facts.refreshToken;
    const taken: Parameters<Store["remember"]>[0] = isNew
      ? { refreshToken: given, token: undefined, refreshKey: undefined, formers: undefined }
      : {};
    store.remember({ refreshGiven: given, ...taken });
  }

  async current(): Promise<string> {
    const token = this.#store.facts.token;
    const left = (token?.ends ?? 0) - Date.now();
    if (token && left > (Date.now() >= this.#nextTry ? this.#margin : LAST_MINUTES)) return token.value;
    try {
      return await this.#renew();
    } catch (error) {
      // The access token may work although no other one is given: after a rotation of the secret, for instance.
      if (!(error instanceof Unavailable || error instanceof NoToken) || !token || left <= LAST_MINUTES) throw error;
      log.warn(`going on with the old token: ${error.message}`);
      this.#nextTry = Date.now() + PAUSE_AFTER_FAILURE;
      return token.value;
    }
  }

  /** A token in place of one that was answered 401. Another call may have got it already. */
  async insteadOf(refused: string): Promise<string> {
    const token = this.#store.facts.token;
    return token && token.value !== refused ? token.value : this.#renew();
  }

  #renew(): Promise<string> {
    this.#renewing ??= this.#ask().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  async #ask(): Promise<string> {
    if (this.#refusal && Date.now() < this.#refusedUntil) throw this.#refusal;
    const { refreshToken, refreshKey = randomUUID(), formers = [] } = this.#store.facts;
    // A second use of a refresh token is taken for theft, unless it comes with the key of the first: then it has the first one's
    // answer. So the key is stored before the call, and kept until the answer is. The other grant ignores it.
    this.#store.remember({ refreshKey });
    let used: Refresh = { token: refreshToken, key: refreshKey };
    let answer = await this.#request(used);
    const older = formers.filter((one) => Date.now() < one.until);
    while ((answer.body as { reason?: string } | undefined)?.reason === "unknown" && older.length > 0) {
      // The marketplace's database was set back: a token before works again, under its own key.
      used = older.shift() ?? used;
      answer = await this.#request(used);
    }
    if (answer.status !== 200) {
      const refusal = new NoToken(`no token: ${answer.status} ${JSON.stringify(answer.body)}`);
      if ((answer.body as { reason?: string } | undefined)?.reason) {
        this.#refusal = refusal;
        this.#refusedUntil = Date.now() + REFUSED_FOR;
      }
      throw refusal;
    }
    const given = answer.body as TokenResponse;
    // Stored before anything else is done: the old refresh token is used up.
    this.#store.remember({
      token: { value: given.access_token, ends: Date.now() + given.expires_in * 1000 },
      refreshToken: given.refresh_token,
      refreshKey: undefined,
      formers: used.token ? [{ ...used, until: Date.now() + FORMER_WORKS }, ...older] : undefined,
    });
    log.info(`got a token by ${used.token ? "refresh_token" : "client_credentials"}`);
    return given.access_token;
  }

  #request({ token, key }: Refresh): Promise<Answer> {
    const form = new URLSearchParams(
      token ? { grant_type: "refresh_token", refresh_token: token } : { grant_type: "client_credentials" },
    );
    return send({
      method: "POST",
      url: `${this.#settings.apiUrl}/oauth/token`,
      headers: {
        Authorization: this.#credentials(),
        "Content-Type": "application/x-www-form-urlencoded",
        "Idempotency-Key": key,
      },
      body: form.toString(),
    });
  }

  /** RFC 6749 §2.3.1: both halves are form-encoded before they are joined. */
  #credentials(): string {
    const pair = [this.#settings.clientId, this.#settings.clientSecret].map(encodeURIComponent).join(":");
    return `Basic ${Buffer.from(pair).toString("base64")}`;
  }
}
