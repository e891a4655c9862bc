import { describe, expect, test } from 'vitest'
import { scanPython } from '../../../src/state/text/python-literals.ts'
import {
  findUnfitReference,
  listPythonVariables,
  resolvePython,
} from '../../../src/state/text/python-references.ts'
import { askPython, hasPython, samplePrograms } from '../../support/python-programs.ts'

const resolve = (code: string, ...texts: string[]): string =>
  resolvePython(code, texts.length, (step) => texts[step] ?? '')

describe.skipIf(!hasPython())('beside the real Python', () => {
  test('the literals of 2,000 random programs are where Python finds them', () => {
    const programs = samplePrograms(2000, 18).map(({ code }) => code)
    const found = askPython(programs.map((scan) => ({ scan }))) as { valid: boolean; strings: string[] }[]
    const valid = programs.flatMap((code, at) =>
      found[at]?.valid ? [{ code, strings: found[at].strings }] : [],
    )
    expect(valid.length).toBeGreaterThan(600)
    for (const { code, strings } of valid) {
      const { literals, isComplete } = scanPython(code)
      const bodies = literals
        .filter(({ nested }) => !nested)
        .map(({ start, end }) => code.slice(start, end).replaceAll('\r\n', '\n'))
      const expected = strings.map((one) =>
        /^\w*("""|'''|["'])([\s\S]*)\1$/.exec(one)?.[2]?.replaceAll('\r\n', '\n'),
      )
      expect([code, bodies, isComplete]).toEqual([code, expected, true])
    }
  })

  test('2,000 random programs with hostile results are the planned ones, with the results as text', () => {
    const cases = samplePrograms(2000, 81)
      .filter(({ code }) => !findUnfitReference(code))
      .map((one) => {
        const texts = one.texts.map((text) => text.toWellFormed())
        const steps = listPythonVariables(one.code, 2)
        const results =
          steps.length === 0 ? null : texts.map((text, at) => (steps.includes(at) ? text : null))
        return { code: one.code, texts, results, resolved: resolve(one.code, ...one.texts) }
      })
    const verdicts = askPython(cases)
    const wrong = cases.flatMap((one, at) =>
      verdicts[at] === 'ok' || verdicts[at] === 'invalid' ? [] : [{ ...one, verdict: verdicts[at] }],
    )
    expect(wrong).toEqual([])
    const resolved = cases.filter((one, at) => verdicts[at] === 'ok' && one.code !== one.resolved)
    const counts = [resolved.length, resolved.filter(({ results }) => results).length]
    expect([counts, counts.every((count) => count > 80)]).toEqual([counts, true])
  })
})

describe('references in a program', () => {
  test('of a plain literal give way to the result, escaped for it', () => {
    expect(resolve('a = "{results[0]}"', `'"\\\n`)).toBe('a = "\\x27\\x22\\\\\\x0a"')
  })

  test('after an open escape do not go on with it', () => {
    expect(resolve('a = "\\1{results[0]}\\{results[0]}"', '1')).toBe('a = "\\0011\\\\1"')
  })

  test.each<[string, string, string]>([
    ['a plain literal', `a = "{results[0]}"`, `a = "it\\x27s \\\\ here"`],
    [
      'an escape before it',
      `a = "\\1{results[0]}\\{results[0]}"`,
      `a = "\\001it\\x27s \\\\ here\\\\it\\x27s \\\\ here"`,
    ],
    ['a comment', `a = 1 # {results[0]}`, `a = 1 # {results[0]}`],
    ['code that reads the variable', `print(results[0])`, `results = ["it's \\\\ here"]\nprint(results[0])`],
    ['an f-string', `\nprint(f"{results[0]}")`, `results = ["it's \\\\ here"]\nprint(f"{results[0]}")`],
    ['an attribute of that name', `print(a.results[0])`, `print(a.results[0])`],
    ['a literal that has no end', `\na = "{results[0]}`, `results = ["it's \\\\ here"]\na = "{results[0]}`],
    [
      'an import that must come first',
      `from __future__ import annotations # now\nprint(results)`,
      `from __future__ import annotations; results = ["it's \\\\ here"] # now\nprint(results)`,
    ],
    [
      'code that is indented',
      `\n  print(results)\n  `,
      `  results = ["it's \\\\ here"]\n  print(results)\n  `,
    ],
  ])('in %s', (_, code, expected) => {
    expect(resolve(code, "it's \\ here")).toBe(expected)
  })

  test.each([
    ['a raw literal', `r"{results[0]}"`, 'a raw literal'],
    ['bytes', `B'{results[0]}'`, 'a bytes literal'],
    ['a literal in an f-string of 3.12', `f"{d["{results[0]}"]}"`, 'a literal in an f-string'],
  ])('in %s are unfit', (_, code, place) => {
    expect([findUnfitReference(code), resolve(code, 'text')]).toEqual([{ step: 0, place }, code])
  })

  test('the variable has the results that the program reads, or all where it does not say which', () => {
    const read = (code: string): number[] => listPythonVariables(code, 3)
    expect(read('print(results[1], f"{results[0]}", results[7])')).toEqual([0, 1])
    expect(read('for one in results: print(one)')).toEqual([0, 1, 2])
    expect(read('print("results")  # results[0]')).toEqual([])
    expect(resolve('print(results[1])', 'a', 'b', 'c')).toBe('results = [None, "b", None]\nprint(results[1])')
  })

  test('f-strings nest as in 3.12', () => {
    const code = `f"{x:{"a"}>{f'{"}"}'}} {{ {'#'} \\N{BULLET}" 'b{results[0]}'`
    const { literals, isComplete } = scanPython(code)
    expect(literals.map(({ kind, start, end, nested }) => [kind, code.slice(start, end), nested])).toEqual([
      ['plain', 'a', true],
      ['plain', '}', true],
      ['formatted', `{"}"}`, true],
      ['plain', '#', true],
      ['formatted', code.slice(2, code.lastIndexOf('" ')), false],
      ['plain', 'b{results[0]}', false],
    ])
    expect(isComplete).toBe(true)
  })

  test('a program of 1 MB is read to its end, where a quadratic scan would not end', () => {
    const parts = ['f"{', 'a', '\\N{', "'{results[0]}", '#\n', '"""', 'results[0]', '{results[0]}"']
    for (const part of parts) expect(resolve(part.repeat(2 ** 20 / part.length), ''), part).toBeDefined()
    // each format in another one
    expect(scanPython(`f"${'{a:'.repeat(2 ** 20 / 3)}`).isComplete).toBe(false)
  })
})
