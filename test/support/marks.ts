import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'

/** True in `npm test`, which leaves out what a cheaper test says as well. Alone, and in `npm run test:all`, all tests of a file run. */
export const isGate = process.env.MASON_TEST_TIER === 'gate'

/** The marks that a test file may have in the comments above its first line of code, one a line: `// tier: all`. */
const marks = {
  /** Only `npm run test:all` runs it. */
  tier: ['all'],
  /** It needs a database. With servers, the gate runs `both` on the embedded one too: SQL, locks, hints or queue differ there. */
  backends: ['either', 'both'],
  /** An assertion that fails in it is a broken promise of Mason, so the gate never repeats it. */
  asserts: ['invariants'],
} as const

type Mark = { [Name in keyof typeof marks]: `${Name}: ${(typeof marks)[Name][number]}` }[keyof typeof marks]

const known: readonly string[] = Object.entries(marks).flatMap(([name, values]) =>
  values.map((value) => `${name}: ${value}`),
)

/** The marks of a file by its text; any other comment of that form is an error. */
export const readMarks = (text: string, path: string): Set<Mark> => {
  const found = new Set<Mark>()
  for (const line of text.split('\n')) {
    if (!line.startsWith('//')) break
    const mark = /^\/\/ (\w+: \w+)$/.exec(line)?.[1]
    if (mark === undefined) continue
    if (!known.includes(mark))
      throw new Error(`${path} has the unknown mark "${mark}": use one of ${known.join(', ')}`)
    found.add(mark as Mark)
  }
  return found
}

/** The test files below a folder that have a mark. */
export const filesMarked = (mark: Mark, folder = 'test'): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
    .filter((path) => marksOf(path).has(mark))
    .sort()

/** The integration tests: what needs a database. */
export const findIntegrationFiles = (): string[] => [
  ...filesMarked('backends: either'),
  ...filesMarked('backends: both'),
]

/** The marks of the file at this path. */
export const marksOf = (path: string): Set<Mark> => readMarks(startOf(path), path)

const startOf = (path: string): string => {
  const file = openSync(path, 'r')
  const start = Buffer.alloc(500)
  const length = readSync(file, start)
  closeSync(file)
  return start.toString('utf8', 0, length)
}
