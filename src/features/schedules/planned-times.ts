import { Cron } from 'croner'

/** When a schedule fires: the fields of a cron expression in a time zone, as its row has them. */
export type CronPlan = { cron: string; time_zone: string }

const maxLength = 200
const minuteMs = 60_000
const dayMs = 86_400_000

/** What reads the clocks of a zone; making one takes longer than all else here. Throws a RangeError for an unknown zone. */
const createZoneFormat = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })

/** What clocks of the zone show at an instant, as the milliseconds that would show it in UTC. */
const toWall = (at: number, zone: Intl.DateTimeFormat): number => {
  const parts = Object.fromEntries(
    zone.formatToParts(at).map(({ type, value }) => [type, Number(value)]),
  ) as Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>
  const { year, month, day, hour, minute, second } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

/**
 * The instant at which clocks of the zone show `wall`. Of two, when clocks are set back, the first; where clocks skip it,
 * the instant at which they are set forward.
 */
const toInstant = (wall: number, zone: Intl.DateTimeFormat): number => {
  const offsetAt = (at: number): number => toWall(at, zone) - at
  const [before, after] = [offsetAt(wall - dayMs), offsetAt(wall + dayMs)]
  const found = [wall - before, wall - after].filter((at) => toWall(at, zone) === wall)
  if (found.length > 0) return Math.min(...found)
  let [early, late] = [wall - after, wall - before]
  while (late - early > 1000) {
    const middle = Math.floor((early + late) / 2000) * 1000
    if (toWall(middle, zone) < wall) early = middle
    else late = middle
  }
  return late
}

/** The planned times after an instant in order, in milliseconds since 1970, without end or until none is left. */
function* planTimes({ cron, time_zone }: CronPlan, after: number): Generator<number> {
  const zone = createZoneFormat(time_zone)
  // the expression reads clocks of the zone as if they were those of UTC, so that the rules for shifts are ours alone
  const plan = new Cron(cron, { timezone: 'UTC', mode: '5-part', paused: true })
  let last = after
  let wall = new Date(toWall(after, zone) - minuteMs)
  for (let next = plan.nextRun(wall); next !== null; next = plan.nextRun(wall)) {
    const at = toInstant(next.getTime(), zone)
    wall = next
    // clocks that are set back show times again that were planned before, and skipped times are one instant
    if (at <= last) continue
    last = at
    yield at
  }
}

/** The first planned time after an instant; null: there is none. */
export const findNextTime = (plan: CronPlan, after: number): number | null => {
  for (const at of planTimes(plan, after)) return at
  return null
}

/** The latest `max` planned times from `from` to `to`, in order; `from` is one of them. */
export const listPlannedTimes = (plan: CronPlan, from: number, to: number, max: number): number[] => {
  // from the end in windows that grow, since an expression can only be read forward
  for (let window = max * minuteMs; ; window *= 4) {
    const start = Math.max(from, to - window)
    const times = start === from ? [from] : []
    for (const at of planTimes(plan, start)) {
      if (at > to) break
      times.push(at)
    }
    if (times.length >= max || start === from) return times.slice(-max)
  }
}

/** What is wrong with an expression, or null. */
export const findCronError = (cron: string): string | null => {
  if (cron.length > maxLength) return `has more than ${maxLength} characters`
  if (!/^[\dA-Za-z*,/#-]+( [\dA-Za-z*,/#-]+){4}$/.test(cron))
    return 'must be five fields separated by one space: minute, hour, day of the month, month, day of the week'
  try {
    return findNextTime({ cron, time_zone: 'UTC' }, Date.UTC(2024, 0, 1)) === null
      ? 'names a date that does not exist, so it would never fire'
      : null
  } catch (error) {
    return `is not a cron expression: ${(error as Error).message.replace(/^CronPattern: /, '')}`
  }
}

/** Whether it is a time zone of the IANA database, such as Europe/Berlin. */
export const isTimeZone = (name: string): boolean => {
  try {
    return createZoneFormat(name) !== undefined
  } catch {
    return false
  }
}
