/** Time for tests, which their verdict never depends on: to wait out a least time, and limits for what hangs. */

/** Whether at least so many milliseconds have passed since this was called. */
export const waitedFor = (): ((ms: number) => boolean) => {
  const since = performance.now()
  return (ms) => performance.now() - since >= ms
}

/** The whole minutes until a date, of which the one that has begun counts. */
export const minutesUntil = (date: string): number => Math.ceil((Date.parse(date) - Date.now()) / 60_000)

/** When something took place, to be compared with the times of other events, never for how long anything took. */
export const moment = (): number => Date.now()
