/** Lines for whoever runs the program. No token or secret belongs here, nor a buyer's data. */

function line(level: string, text: string): void {
  console.log(`${new Date().toISOString()} ${level} ${text}`);
}

export const log = {
  info: (text: string): void => line("INFO", text),
  warn: (text: string): void => line("WARNING", text),
  error: (text: string): void => line("ERROR", text),
};
