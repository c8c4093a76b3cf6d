/** Lines for whoever runs the program. No token or secret belongs here, nor a buyer's data. */

import { AsyncLocalStorage } from "node:async_hooks";

/** The seller for whom the present work is done. */
export const seller = new AsyncLocalStorage<string>();

function line(level: string, text: string): void {
  console.log(`${new Date().toISOString()} ${level} ${seller.getStore() ?? "all"}: ${text}`);
}

export const log = {
  info: (text: string): void => line("INFO", text),
  warn: (text: string): void => line("WARNING", text),
  error: (text: string): void => line("ERROR", text),
};
