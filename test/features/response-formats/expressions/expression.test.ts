import { compile, TreeInterpreter } from '@jmespath-community/jmespath'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import {
  compileExpression,
  JmesPathError,
} from '../../../../src/features/response-formats/expressions/expression.ts'

const faultOf = (text: string): JmesPathError => {
  try {
    compileExpression(text)
  } catch (error) {
    if (error instanceof JmesPathError) return error
  }
  throw new Error('it parsed')
}

const paths = builtInFormats()
  .flatMap((format) => [format.paths, ...(format.stream == null ? [] : [format.stream.paths])])
  .flatMap(({ usage, ...others }) => [
    ...Object.values(others),
    ...(typeof usage === 'object' ? Object.values(usage) : []),
  ])
const others = ['a', 'a.b', 'a[0]', 'a[-1]', 'a[]', 'a[].b', '[0]', 'a | b', 'a && b || c', '!a', 'a.[b, c][]', '@',
  "a[?b=='x'].c", 'a[?b!=`1`]', 'a.{x: b, y: c}', 'a[1:]', 'a[*].b', 'a.*', 'length(a)', 'sort_by(a, &b)', '$.a',
  'let $x = a in $x.b', 'a[?b].c[]', 'a == `null`', 'a[][][]', 'to_string(a)', "a && 'x'"] // biome-ignore format: a list

describe('an expression', () => {
  test('gives what the library gives, on any JSON', () => {
    const names = fc.constantFrom(
      ...'a b c choices message delta content output type usage data index'.split(' '),
    )
    const json = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, true, false, 0, 1, '', 'x', 'text', [], {}),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(names, tie('value'), { maxKeys: 4 }),
      ),
    })).value
    const all = [...new Set([...paths, ...others])].filter((text) => text !== undefined)
    const pairs = all.map((text) => ({ text, ours: compileExpression(text), node: compile(text) }))
    const outcome = (work: () => unknown): unknown => {
      try {
        return { value: work() ?? null }
      } catch {
        return 'thrown'
      }
    }
    fc.assert(
      fc.property(json, (data) => {
        for (const { text, ours, node } of pairs) {
          const theirs = outcome(() => TreeInterpreter.search(node, data as never))
          expect([text, outcome(() => ours.evaluate(data))]).toEqual([text, theirs])
        }
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['a..b', 2],
    ['a b', 2],
    ['a[', 2],
    ['choices[0].message.]content', 19],
    ['"x', 0],
    ['a.b.nope(c)', 4],
    ['', 0],
  ])('%j is refused at %i', (text, position) => {
    expect(faultOf(text).position).toBe(position)
    expect(faultOf(text).message).not.toBe('')
  })

  test('reads own members alone, also where the library would give an inherited one', () => {
    const data: unknown = JSON.parse('{"a":{},"list":[{},{"constructor":1}]}')
    for (const text of [
      'constructor',
      'a.toString',
      '"\\u0063onstructor"',
      'a.__proto__',
      'map(&valueOf, list)[0]',
    ])
      expect([text, compileExpression(text).evaluate(data)]).toEqual([text, null])
    expect(compileExpression('list[].constructor').evaluate(data)).toEqual([1])
    expect(compileExpression('"__proto__".b').evaluate(JSON.parse('{"__proto__":{"b":2}}'))).toBe(2)
  })

  test('knows JSON in texts, and its functions are not those of the whole process', () => {
    expect(compileExpression('from_json(a).b').evaluate({ a: '{"b":1}' })).toBe(1)
    expect(compileExpression('from_json(a)').evaluate({ a: '{' })).toBeNull()
    expect(compileExpression('to_json(a)').evaluate({ a: 'x' })).toBe('"x"')
    expect(TreeInterpreter.runtime.isRegistered('from_json')).toBe(false)
  })
})
