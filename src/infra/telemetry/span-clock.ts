/** Further off than this the wall clock was set anew, or the machine has slept. */
const mostDriftMs = 50

/**
 * Milliseconds since 1970 with fractions. All spans of a process go by one of these, so that what came first also begins
 * first: the wall clock alone tells whole milliseconds and may go back.
 */
export const createSpanClock = (
  wallMs: () => number = () => Date.now(),
  monotonicMs: () => number = () => performance.now(),
): (() => number) => {
  let offset = wallMs() - monotonicMs()
  return () => {
    const nowMs = monotonicMs()
    const wantedMs = wallMs() - nowMs
    if (Math.abs(wantedMs - offset) > mostDriftMs) offset = wantedMs
    return offset + nowMs
  }
}
