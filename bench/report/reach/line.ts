/** One figure of a line: what it came to, and what it had to. `unit` stands after the number. */
export type Check = { value: number; unit: string; reach: number; stretch?: number; atLeast?: boolean }

/** The median of a figure of a variant of a case; NaN: it was not measured. */
export type Find = (name: string, variant: string, figure: string) => number

/** One line of the table of what was aimed at. */
export type Line = { what: string; checks(find: Find): Check[] }
