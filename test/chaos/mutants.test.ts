import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { mutants } from '../../chaos/mutants/all.ts'
import { mutate } from '../../chaos/mutants/mutant.ts'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'

describe('every mutant', () => {
  test('has a name of its own', () => {
    const names = mutants.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  test('finds the guard that it removes in exactly one place', async () => {
    const errors: string[] = []
    for (const mutant of mutants) {
      const text = await readFile(toPackagePath(mutant.file), 'utf8')
      try {
        expect(mutate(text, mutant)).not.toBe(text)
      } catch (error) {
        errors.push(String(error))
      }
    }
    expect(errors).toEqual([])
  })

  test('names tests that exist', async () => {
    const errors: string[] = []
    for (const { name, caughtBy } of mutants)
      for (const { file, test } of caughtBy) {
        const text = await readFile(toPackagePath(file), 'utf8')
        const titles = [
          ...text.matchAll(
            /^\s*(?:test|it)(?:\.(?:each|for)(?:<.*>)?\(.*\)|\.runIf\(.*\))?\(\s*(['"`])(.*?)\1,/gm,
          ),
        ].map((match) => match[2] ?? '')
        if (!titles.some((title) => endsWith(test, title))) errors.push(`${name}: ${test}`)
      }
    expect(errors).toEqual([])
  })
})

/** A title may stand for several tests, each with a value of its own. */
const endsWith = (test: string, title: string): boolean => {
  const parts = title.replaceAll('\\', '').split(/%[is]/)
  const last = parts.at(-1) ?? ''
  return test.endsWith(last) && parts.every((part) => test.includes(part))
}
