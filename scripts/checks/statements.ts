import type { Check } from '../check-repository.ts'
import { findHighParameters, findLiteralSpreads, readSources } from '../source-tree.ts'

const sources = readSources()

/** How statements and literals of src are written. See decision 185. */
export const statements: readonly Check[] = [
  [
    'a statement has a parameter above $9; write $name in it and pass an object',
    () => findHighParameters(sources),
  ],
  ['a literal is spread; write its members in its place', () => findLiteralSpreads(sources)],
]
