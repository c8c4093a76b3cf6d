/** What the program is told by its environment. */

export interface Settings {
  readonly apiUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Set where the program works for another seller: what the seller's consent gave. Without it, it works for its owner. */
  readonly refreshToken: string | undefined;
  /** Where the marketplace reaches the receiver, and the local port behind that address. */
  readonly webhookUrl: string;
  readonly port: number;
  /** The file of everything that has to survive a restart. */
  readonly state: string;
  readonly catchUpSeconds: number;
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

export function fromEnvironment(): Settings {
  return {
    apiUrl: required("API_URL").replace(/\/$/, ""),
    clientId: required("CLIENT_ID"),
    clientSecret: required("CLIENT_SECRET"),
    refreshToken: process.env["REFRESH_TOKEN"],
    webhookUrl: required("WEBHOOK_URL"),
    port: Number(process.env["PORT"] ?? "9000"),
    state: process.env["STATE"] ?? "shipper.json",
    catchUpSeconds: Number(process.env["CATCH_UP_SECONDS"] ?? "300"),
  };
}
