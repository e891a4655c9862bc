import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  countCode,
  fileGraph,
  findCycles,
  findHighParameters,
  findLiteralSpreads,
  findPrivateWords,
  findSharedNames,
  folderGraph,
  listExports,
  readSources,
  root,
} from './source-tree.ts'

/** `npm run figures`: prints the size and shape of the source. */

const sources = readSources()
const under = (folder: string) => sources.filter(({ path }) => path.startsWith(folder))
const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)
const countLines = ({ text }: { text: string }): number => text.split('\n').length - 1
const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(0)} %`

const exports = listExports(sources)
const publicNames = [
  ...readFileSync(join(root, 'src/index.ts'), 'utf8').matchAll(/^export (?:type )?\{([^}]*)\}/gm),
].flatMap(([, names = '']) => names.split(',').map((name) => name.replace(/\btype\b/, '').trim()))
const withExample = publicNames.filter((name) =>
  sources.some(({ text }) =>
    new RegExp(`@example(?:(?!\\*/)[\\s\\S])*\\*/\\nexport (?:\\w+ )*?${name}\\b`).test(text),
  ),
)

const rows: [figure: string, value: string | number][] = [
  ['files in src', sources.length],
  ['lines in src without comments and blanks', sum(sources.map(countCode))],
  ['lines in src/infra without comments and blanks', sum(under('infra/').map(countCode))],
  ['lines in src/features/offline-model', sum(under('features/offline-model/').map(countLines))],
  ['import cycles between files', findCycles(fileGraph(sources)).length],
  ['import cycles between folders', findCycles(folderGraph(fileGraph(sources))).length],
  ['exported names in two files', findSharedNames(sources).length],
  ['parameters of statements above $9', findHighParameters(sources).length],
  ['literals spread into a literal', findLiteralSpreads(sources).length],
  ['words of the private vocabulary', findPrivateWords().length],
  [
    'exports with a doc comment',
    percent(exports.filter(({ documented }) => documented).length, exports.length),
  ],
  ['exports of index.ts with an @example', percent(withExample.length, publicNames.filter(Boolean).length)],
  ['longest port file', Math.max(...under('state/ports/').map(countLines))],
]
const width = Math.max(...rows.map(([figure]) => figure.length))
for (const [figure, value] of rows) console.log(`${figure.padEnd(width)}  ${value}`)
