/** One guard taken out of the runtime, by changing text; a test must notice it. */
export type Mutant = {
  /** The guard that is missing. */
  name: string
  file: string
  /** Each `from` occurs exactly once in the file, or after the one place of `after`. */
  edits: readonly Edit[]
  /** What would go wrong without the guard. */
  why: string
  /** Tests that fail without it, every one of them. */
  caughtBy: readonly NamedTest[]
}

export type Edit = { after?: string; from: string; to: string }

/** A test by its file and its name with those of its groups before it. */
export type NamedTest = { file: string; test: string }

/** The text without its guard. Throws when an edit finds no place or several: the code has changed, so must the mutant. */
export const mutate = (text: string, { name, file, edits }: Mutant): string =>
  edits.reduce((current, { after, from, to }) => {
    const begin = after === undefined ? 0 : onlyPlaceOf(after, current, 0, `${name}: ${file}`)
    const at = onlyPlaceOf(from, current, begin, `${name}: ${file}`, after !== undefined)
    return current.slice(0, at) + to + current.slice(at + from.length)
  }, text)

const onlyPlaceOf = (part: string, text: string, begin: number, where: string, first = false): number => {
  const at = text.indexOf(part, begin)
  if (at < 0) throw new Error(`${where} does not hold "${part}"; update the mutant`)
  if (!first && text.indexOf(part, at + 1) >= 0)
    throw new Error(`${where} holds "${part}" more than once; update the mutant`)
  return at
}

/** The tests of one file. */
export const testsOf =
  (file: string) =>
  (...tests: string[]): NamedTest[] =>
    tests.map((test) => ({ file, test }))

export const interleaved: NamedTest = {
  file: 'test/engine/runs/interleavings.test.ts',
  test: 'the database is always in a state of the protocol model, in whatever order statements, errors and deaths come',
}
