/** One HTTP request, sent as often as it takes to get an answer that means something. */

import { setTimeout as sleep } from "node:timers/promises";
import { log } from "./log.js";

const USER_AGENT = "TypeScriptShipper/1.0 (+https://shipper.example/docs)";
/** The service may take 30 s to find out whether its database has committed. */
const TIMEOUT = 35_000;
const ATTEMPTS = 6;
const LONGEST_PAUSE = 60_000;
/** After this long what could not be done is tried again. */
export const PAUSE_AFTER_FAILURE = 60_000;

/** There was no answer that means something: try the whole thing again later. */
export class Unavailable extends Error {}

export interface Outgoing {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where it is not JSON. */
  readonly body: unknown;
}

/** The entries of an error of /v1; none where the answer is a good one, or somebody else's. */
function errors(answer: Answer): { code: string; path?: string }[] {
  const body = answer.body as { errors?: { code: string; path?: string }[] } | undefined;
  return body?.errors ?? [];
}

export function errorCodes(answer: Answer): string[] {
  return errors(answer).map((error) => error.code);
}

export function errorPaths(answer: Answer): string[] {
  return errors(answer).map((error) => error.path ?? "");
}

/** Sends a read, a deletion, or a write with an Idempotency-Key: a lost answer may mean that it was carried out, and it is sent again. */
export async function send(request: Outgoing): Promise<Answer> {
  const what = `${request.method} ${request.url}`;
  let pause = 1000;
  for (let attempt = 1; ; attempt += 1) {
    const result = await sendOnce(request);
    if (!(result instanceof Error) && !isPassing(result)) return result;
    const reason = result instanceof Error ? `no answer: ${result.message}` : `answered ${result.status}`;
    if (attempt === ATTEMPTS) throw new Unavailable(`${what}: ${reason}`);
    // The service knows best how long to wait. Where it says nothing, wait longer each time, and not in step with others.
    const asked = result instanceof Error ? null : result.headers.get("Retry-After");
    const wait = asked && /^\d+$/.test(asked) ? Number(asked) * 1000 : pause * (0.5 + Math.random() / 2);
    log.info(`${what}: ${reason}, again in ${(wait / 1000).toFixed(1)} s`);
    await sleep(wait);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

function isPassing(answer: Answer): boolean {
  if (answer.status === 409) return errorCodes(answer).includes("idempotency_in_progress");
  // A success that is not JSON is somebody else's, such as a proxy's page: nothing tells what became of the request.
  if (answer.status < 300 && answer.status !== 204) return answer.body === undefined;
  return [408, 429].includes(answer.status) || answer.status >= 500;
}

async function sendOnce(request: Outgoing): Promise<Answer | Error> {
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: { "User-Agent": USER_AGENT, ...request.headers },
      body: request.body ?? null,
      signal: AbortSignal.timeout(TIMEOUT),
    });
    const text = await response.text();
    // What is in between, such as a proxy, may answer a 502 in HTML.
    const isJson = response.headers.get("Content-Type")?.startsWith("application/json") ?? false;
    return { status: response.status, headers: response.headers, body: isJson ? (JSON.parse(text) as unknown) : undefined };
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
