/**
 * What has to survive a restart: tokens, the subscription, events taken, orders to look at, parcels under way.
 *
 * A file of JSON for each seller that is replaced whole, which is enough for one process and some thousand orders. Where there is
 * more, let these methods be transactions in your database.
 */

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** A delivery comes again for 15 hours at most; two days are on the safe side. In milliseconds. */
const EVENTS_ARE_KEPT = 2 * 24 * 3600 * 1000;

/** More ids are refused. */
const ORDERS_AT_ONCE = 100;

export interface Token {
  readonly value: string;
  /** In milliseconds since 1970. */
  readonly ends: number;
}

/** A refresh token, if there is one, and the key under which it is used. */
export interface Refresh {
  readonly token: string | undefined;
  readonly key: string;
}

export interface Subscription {
  readonly id: string;
  readonly secret: string;
}

/** A write as it is sent, however often: the same key has to come with the same bytes. */
export interface Write {
  readonly idempotencyKey: string;
  readonly body: string;
}

/** Changes of offers that are under way. */
export interface Batch extends Write {
  readonly madeAt: number;
  /** Where in the file the next changes begin. */
  readonly end: number;
}

export interface Task {
  readonly orderId: string;
  /** Grows whenever something new is heard of the order. */
  readonly round: number;
}

interface Facts {
  token?: Token;
  refreshToken?: string;
  /** The refresh token that the settings gave last. */
  refreshGiven?: string;
  /** The key of the refresh that is under way. */
  refreshKey?: string;
  /** The refreshes before, the newest first, and until when each may be repeated. */
  formers?: (Refresh & { readonly until: number })[];
  subscription?: Subscription;
  /** How far the journal is read. */
  cursor?: string;
  batch?: Batch;
  /** How far the file of changes is done. */
  changesDone?: number;
}

interface State {
  facts: Facts;
  /** When each event was taken, by its id. */
  events: Record<string, number>;
  /** When each order is due, by its id. */
  work: Record<string, { dueAt: number; round: number }>;
  /** The shipment of each order that is under way, by the order's id. */
  parcels: Record<string, Write>;
}

function add(state: State, orderId: string): void {
  state.work[orderId] = { dueAt: Date.now(), round: (state.work[orderId]?.round ?? 0) + 1 };
}

export class Store {
  readonly #file: string;
  #state: State;
  #wake: () => void = () => {};

  constructor(file: string) {
    this.#file = file;
    // A store of an earlier version may lack some.
    this.#state = { facts: {}, events: {}, work: {}, parcels: {}, ...read(file) };
  }

  get facts(): Readonly<Facts> {
    return this.#state.facts;
  }

  /** Notes all of the facts at once; undefined forgets one. */
  remember(facts: { [Name in keyof Facts]: Facts[Name] | undefined }): void {
    this.#change((state) => Object.assign(state.facts, facts));
  }

  /** Notes events by their ids, together with the orders that they make work of; returns how many were new. */
  take(events: readonly (readonly [string, string | undefined])[], cursor = this.#state.facts.cursor): number {
    const now = Date.now();
    const found = events.filter(([id]) => !Object.hasOwn(this.#state.events, id));
    this.#change((state) => {
      for (const [id, takenAt] of Object.entries(state.events)) {
        if (takenAt < now - EVENTS_ARE_KEPT) delete state.events[id];
      }
      for (const [id, orderId] of found) {
        state.events[id] = now;
        if (orderId !== undefined) add(state, orderId);
      }
      Object.assign(state.facts, { cursor });
    });
    this.#wake();
    return found.length;
  }

  lookAt(orderIds: readonly string[], cursor: string): void {
    this.#change((state) => {
      for (const orderId of orderIds) add(state, orderId);
      Object.assign(state.facts, { cursor });
    });
    this.#wake();
  }

  /** Waits until there are tasks that are due. */
  async nextTasks(): Promise<Task[]> {
    for (;;) {
      const work = Object.entries(this.#state.work).map(([orderId, of]) => ({ orderId, ...of }));
      const [next, now] = [work.sort((one, other) => one.dueAt - other.dueAt).slice(0, ORDERS_AT_ONCE), Date.now()];
      const due = next.filter((task) => task.dueAt <= now);
      if (due.length > 0) return due;
      await this.#news(next[0] && next[0].dueAt - now);
    }
  }

  #news(wait: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = wait === undefined ? undefined : setTimeout(resolve, wait);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The task is over, unless the order was heard of again meanwhile. */
  done(task: Task): void {
    this.#change((state) => {
      if (state.work[task.orderId]?.round === task.round) delete state.work[task.orderId];
    });
  }

  putOff(task: Task, milliseconds: number): void {
    this.#change((state) => {
      const work = state.work[task.orderId];
      if (work?.round === task.round) work.dueAt = Date.now() + milliseconds;
    });
  }

  parcel(orderId: string): Write | undefined {
    return this.#state.parcels[orderId];
  }

  forget(orderId: string): void {
    this.#change((state) => {
      delete state.parcels[orderId];
    });
  }

  keep(orderId: string, parcel: Write): void {
    this.#change((state) => {
      state.parcels[orderId] = parcel;
    });
  }

  /** Until this has returned, nothing that depends on it may be sent or answered. What cannot be saved did not happen. */
  #change(change: (state: State) => void): void {
    const state = structuredClone(this.#state);
    change(state);
    this.#save(state);
    this.#state = state;
  }

  #save(state: State): void {
    const next = `${this.#file}.next`;
    const file = openSync(next, "w", 0o600);
    try {
      writeFileSync(file, JSON.stringify(state));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, this.#file);
    // The new name, too, has to survive a power cut. Windows lets nobody ask for that.
    if (process.platform === "win32") return;
    const folder = openSync(dirname(this.#file), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}

function read(file: string): State | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as State;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
