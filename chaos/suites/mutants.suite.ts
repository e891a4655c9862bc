import { fileURLToPath } from 'node:url'
import { mutants } from '../mutants/all.ts'
import type { Mutant, NamedTest } from '../mutants/mutant.ts'
import { findMisplaced, inCopies, keyOf, runTests, type Verdicts, withMutant } from '../mutants/runner.ts'
import type { Suite } from '../suite.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** What has to go well without any of the guards: a mutant that breaks this is broken itself, and proves nothing. */
const ordinary: NamedTest = {
  file: 'test/engine/runs/run.test.ts',
  test: 'a run goes from the queue through the graph to the answer, one action a node',
}

const suite: Suite = {
  about:
    'each guard of the protocol is taken out in turn: the tests named for it must fail, and an ordinary run must not',
  async run({ seed, scale, say, signal, only }) {
    if (!process.env.TEST_DATABASE_URL || !process.env.TEST_REDIS_URL)
      throw new Error('the tests need TEST_DATABASE_URL and TEST_REDIS_URL')
    const table = mutants.filter(
      ({ name, file }) => !only || only.some((text) => name.includes(text) || file.includes(text)),
    )
    if (table.length === 0)
      throw new Error(`--only ${only?.join(' --only ')}: no mutant has this in its name or file`)
    const chosen = sample(table, Math.max(1, Math.round(table.length * Math.min(1, scale))), seed)
    const failures = await findMisplaced(root, chosen)
    const figures: Record<string, string | number> = { mutants: chosen.length, caught: 0 }
    if (only) figures.only = only.join(', ').slice(0, 100)
    if (failures.length > 0) return { figures, failures }

    say('without mutants')
    const named = new Map(
      chosen
        .flatMap(({ caughtBy }) => [...caughtBy])
        .concat(ordinary)
        .map((one) => [keyOf(one), one]),
    )
    const files = [...new Set([...named.values()].map(({ file }) => file))]
    const byFile = files.map((file) => [...named.values()].filter((one) => one.file === file))
    await inCopies(root, byFile, async (copy, tests) => {
      const verdicts = await runTests(copy, tests, signal)
      for (const one of tests)
        if (verdicts.get(keyOf(one))?.status !== 'passed')
          failures.push(`without any mutant ${tell(one, verdicts)}`)
    })
    if (failures.length > 0) return { figures, failures }

    await inCopies(root, chosen, async (copy, mutant) => {
      const tests = [...mutant.caughtBy, ordinary]
      const verdicts = await withMutant(copy, mutant, () => runTests(copy, tests, signal))
      const faults = faultsOf(mutant, verdicts)
      for (const fault of faults) failures.push(`${mutant.name}: ${fault}`)
      figures[mutant.name] =
        faults.length > 0 ? 'NOT CAUGHT' : `caught by ${mutant.caughtBy.map(keyOf).join('; ')}`
      if (faults.length === 0) figures.caught = Number(figures.caught) + 1
      say(`${mutant.name}: ${faults.length > 0 ? faults.join('; ') : 'caught'}`)
    })
    return { figures, failures }
  },
}

const faultsOf = ({ caughtBy }: Mutant, verdicts: Verdicts): string[] => {
  const survived = caughtBy.filter((one) => verdicts.get(keyOf(one))?.status !== 'failed')
  const broken = verdicts.get(keyOf(ordinary))?.status === 'passed' ? [] : [ordinary]
  return [...survived, ...broken].map((one) => tell(one, verdicts))
}

const tell = (one: NamedTest, verdicts: Verdicts): string => {
  const verdict = verdicts.get(keyOf(one))
  return `${keyOf(one)} ${verdict ? `${verdict.status} ${verdict.said}` : 'did not run'}`
}

/** So many of them in an order that the seed gives. */
const sample = <Item>(items: readonly Item[], count: number, seed: number): Item[] => {
  const left = [...items]
  const taken: Item[] = []
  let state = seed >>> 0
  while (taken.length < count) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    taken.push(...left.splice(Math.floor((state / 2 ** 32) * left.length), 1))
  }
  return taken
}

export default suite
