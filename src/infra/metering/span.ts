const dayMs = 86_400_000
const isDay = (moment: string): boolean => moment.length === 10

/** When a span begins that begins with this day of UTC, or at this time. */
export const startOf = (moment: string): string => new Date(moment).toISOString()

/** When a span has ended that ends with this day of UTC, or at this time: the first moment that is not in it. */
export const endOf = (moment: string): string =>
  new Date(Date.parse(moment) + (isDay(moment) ? dayMs : 0)).toISOString()
