/** Structured log lines: data first, then a fixed message. */
export type Log = {
  debug(data: Record<string, unknown>, message: string): void
  info(data: Record<string, unknown>, message: string): void
  warn(data: Record<string, unknown>, message: string): void
  error(data: Record<string, unknown>, message: string): void
}
