import { randomInt } from 'node:crypto'

/** A seed of its own for each run; for the second tier alone, whose tests print it when they fail. */
export const drawSeed = (): number => randomInt(2 ** 31)
