import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { packagePath } from '../../../src/infra/package-path.ts'
import { mutants } from './all.ts'
import { mutate } from './mutant.ts'

describe('every mutant', () => {
  test('has a name of its own', () => {
    const names = mutants.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  test('still finds the guard it takes out, in exactly one place', async () => {
    const faults: string[] = []
    for (const mutant of mutants) {
      const text = await readFile(packagePath(mutant.file), 'utf8')
      try {
        expect(mutate(text, mutant)).not.toBe(text)
      } catch (error) {
        faults.push(String(error))
      }
    }
    expect(faults).toEqual([])
  })

  test('names tests that are there', async () => {
    const faults: string[] = []
    for (const { name, caughtBy } of mutants)
      for (const { file, test } of caughtBy) {
        const text = await readFile(packagePath(file), 'utf8')
        const titles = [
          ...text.matchAll(/^\s*test(?:\.each\(.*\)|\.runIf\(.*\))?\(\s*(['"`])(.*?)\1,/gm),
        ].map((match) => match[2] ?? '')
        if (!titles.some((title) => endsWith(test, title))) faults.push(`${name}: ${test}`)
      }
    expect(faults).toEqual([])
  })
})

/** A title may stand for several tests, each with a value of its own. */
const endsWith = (test: string, title: string): boolean => {
  const parts = title.replaceAll('\\', '').split(/%[is]/)
  const last = parts.at(-1) ?? ''
  return test.endsWith(last) && parts.every((part) => test.includes(part))
}
