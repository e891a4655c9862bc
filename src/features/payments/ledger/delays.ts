const maxDelayMs = 60_000
/** How long to wait before the next try: 0.2 s, doubling, up to a minute. */
export const toDelayMs = (tries: number): number => Math.min(maxDelayMs, 200 * 2 ** Math.min(tries, 20))
