/** What the program is told by its environment. */

import { readFileSync } from "node:fs";

export interface Settings {
  readonly apiUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** By names of your own: what each seller's consent gave, or null for the application's owner, who needs none. */
  readonly sellers: Record<string, string | null>;
  /** Where the marketplace reaches the receiver, and the local port behind that address. */
  readonly webhookUrl: string;
  readonly port: number;
  /** The folder of everything that has to survive a restart. */
  readonly state: string;
  readonly catchUpSeconds: number;
  /** The folder with each seller's file of changes of offers, if there are any. */
  readonly changes: string | undefined;
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function sellersOf(file: string | undefined): Record<string, string | null> {
  if (!file) return { owner: null };
  const sellers = JSON.parse(readFileSync(file, "utf8")) as Record<string, string | null>;
  for (const name of Object.keys(sellers)) {
    if (!/^[A-Za-z0-9_-]+$/.test(name)) throw new Error(`"${name}" cannot be part of a file's name and of a URL`);
  }
  return sellers;
}

export function fromEnvironment(): Settings {
  return {
    apiUrl: required("API_URL").replace(/\/$/, ""),
    clientId: required("CLIENT_ID"),
    clientSecret: required("CLIENT_SECRET"),
    sellers: sellersOf(process.env["SELLERS"]),
    webhookUrl: required("WEBHOOK_URL").replace(/\/$/, ""),
    port: Number(process.env["PORT"] ?? "9000"),
    state: process.env["STATE"] ?? "state",
    catchUpSeconds: Number(process.env["CATCH_UP_SECONDS"] ?? "300"),
    changes: process.env["CHANGES"],
  };
}
