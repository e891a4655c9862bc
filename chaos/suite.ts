/** What a suite is given. A failure replays with the same seed and scale. */
export type SuiteOptions = {
  seed: number
  /** 1 is what `docs/reliability/figures.md` reports; a slice for the tests is less. Counts and times are multiplied by it. */
  scale: number
  /** Of a suite with a table: the rows whose name or file has one of these texts. */
  only?: readonly string[]
  /** Progress for the person who watches; one line. */
  say(line: string): void
  signal: AbortSignal
}

export type Figures = Record<string, number | string>

/** What a suite found. It passed when `failures` is empty; each names what was broken, where, and the seed's step. */
export type Findings = { figures: Figures; failures: string[] }

/** What each part found, one after the other; figures and failures have the name of their part in front. */
export const findInParts = async (
  parts: Record<string, () => Promise<Findings>>,
  say: SuiteOptions['say'],
): Promise<Findings> => {
  const found: Findings = { figures: {}, failures: [] }
  for (const [name, find] of Object.entries(parts)) {
    const { figures, failures } = await find()
    say(`${name}: ${failures.length === 0 ? 'holds' : failures.join('; ')}: ${JSON.stringify(figures)}`)
    for (const [figure, value] of Object.entries(figures)) found.figures[`${name}: ${figure}`] = value
    found.failures.push(...failures.map((failure) => `${name}: ${failure}`))
  }
  return found
}

/** A campaign of `npm run chaos`: found by its file name, `suites/<name>.suite.ts`, as its default export. */
export type Suite = {
  /** One sentence: what is done to the runtime, and what has to hold. */
  about: string
  run(options: SuiteOptions): Promise<Findings>
}
