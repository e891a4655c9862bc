/** One figure of a line: the measured value and its targets. `unit` follows the number. */
export type Check = { value: number; unit: string; reach: number; stretch?: number; atLeast?: boolean }

/** The median of a figure of a variant of a case; NaN: it was not measured. */
export type Find = (name: string, variant: string, figure: string) => number

/** One line of the table of targets. */
export type Goal = { what: string; checks(find: Find): Check[] }
