import { join } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { readSources, root } from '../scripts/source-tree.ts'
import { findSlowText } from './support/regex-steps.ts'
import { testInAll } from './support/tier.ts'

/** What functions make patterns of, by the code that makes them: an example of each. */
const examples: Readonly<Record<string, readonly RegExp[]>> = {
  "app/cli/doctor/queue.ts new RegExp(`^${name}:(\\\\S+)`, 'm')": [/^redis_version:(\S+)/m],
  "features/user-memory/policy/asked-dates.ts new RegExp(`\\\\b(?:${words})\\\\b|${signs}`, 'i')": [
    /\b(?:(?:(?:on|am) )?(?:(may|mai) (\d\d?)(?:st|nd|rd|th)?|(\d\d?)(?:st|nd|rd|th|\.)? (may|mai))(?:,? (\d{4}))?)\b|(\d\d?)月(\d\d?)[日号]/i,
    /\b(?:(\d\d?|a|an|two) (day|week)s? ago|vor (\d\d?|a|an|two) (day|week)e?n?)\b|(\d\d?|一|两)\s*个?(周|月)前/i,
    /\b(?:(this|diese[nrs]?)|last|(?:letzte|vorige)[nrs]?) (week|month)\b|(?:(这个?|本|今)|上个?|去)(周|月)/i,
  ],
  "app/cli/renderer.ts new RegExp(`.{1,${width}}`, 'gu')": [/.{1,80}/gu],
  'graph/text-streaming.ts new RegExp(`"${field}"\\\\s*:\\\\s*"`)': [/"answer"\s*:\s*"/],
  "features/offline-model/conditions.ts new RegExp(whole, 'iu')": [
    /(?<![\p{L}\p{N}])new york(?![\p{L}\p{N}])/iu,
    /完成/iu,
  ],
  "features/offline-model/conditions.ts new RegExp(`(?:${pattern})\\\\s*${figure}`, 'i')": [
    /(?:>=|≥|\bat least|至少)\s*[$€£¥]?\s?(-?\d[\d,]*(?:\.\d+)?)(?![\d/年月-])/i,
  ],
  "app/http/plumbing/error-responses.ts new RegExp(`^${escaped.replace(/:[A-Za-z0-9_]+/g, '[^/]+').replace(/\\*/g, '.*')}/?$`)":
    [/^\/v1\/sessions\/[^/]+\/runs\/[^/]+\/?$/, /^\/docs\/.*\/?$/],
}

type Pattern = { from: string; source: string; flags: string }
type Site = { from: string; code: string; isAtTop: boolean }

/** Every literal of `src`, and every place that makes a pattern of text. */
const listPatterns = (): { literals: Pattern[]; sites: Site[] } => {
  const literals: Pattern[] = []
  const sites: Site[] = []
  for (const { path, text } of readSources()) {
    let depth = 0
    const enter = (): void => void depth++
    const leave = (): void => void depth--
    const take = (node: { callee: { type: string; name?: string }; start: number; end: number }): void => {
      if (node.callee.name !== 'RegExp') return
      const code = text.slice(node.start, node.end).replaceAll(/\s+/g, ' ')
      sites.push({ from: path, code, isAtTop: depth === 0 })
    }
    new Visitor({
      Literal: (node) => {
        if (!('regex' in node)) return
        const { pattern: source, flags } = node.regex as { pattern: string; flags: string }
        literals.push({ from: path, source, flags })
      },
      NewExpression: (node) => take(node as never),
      CallExpression: (node) => take(node as never),
      FunctionDeclaration: enter,
      'FunctionDeclaration:exit': leave,
      FunctionExpression: enter,
      'FunctionExpression:exit': leave,
      ArrowFunctionExpression: enter,
      'ArrowFunctionExpression:exit': leave,
    }).visit(parseSync(path, text).program)
  }
  return { literals, sites }
}

const { literals, sites } = listPatterns()
const native = globalThis.RegExp
afterAll(() => {
  globalThis.RegExp = native
})

/** The patterns that modules make of text when they are loaded. */
const recordPatterns = async (paths: readonly string[]): Promise<Pattern[]> => {
  const made: Pattern[] = []
  const record = (pattern: RegExp): RegExp => {
    const [, maker = ''] = (new Error().stack ?? '')
      .split('\n')
      .filter((line) => !line.includes('regexes.test'))
    const from = maker.split('/src/')[1]?.split(':')[0]
    if (from !== undefined) made.push({ from, source: pattern.source, flags: pattern.flags })
    return pattern
  }
  vi.resetModules()
  globalThis.RegExp = new Proxy(native, {
    construct: (target, args) => record(Reflect.construct(target, args) as RegExp),
    apply: (target, self, args) => record(Reflect.apply(target, self, args) as RegExp),
  })
  for (const path of paths) await import(join(root, 'src', path))
  globalThis.RegExp = native
  vi.resetModules()
  return made
}

/** By pattern: many are in several files. */
const attacks = new Map<string, string | null>()
const attackOf = (pattern: Pattern): string | null => {
  const key = `/${pattern.source}/${pattern.flags}`
  const attack = attacks.has(key) ? attacks.get(key) : findSlowText(pattern)
  attacks.set(key, attack ?? null)
  return attack ?? null
}

const listSlow = (patterns: readonly Pattern[]): string[] =>
  patterns
    .map((pattern) => ({ ...pattern, attack: attackOf(pattern) }))
    .filter(({ attack }) => attack !== null)
    .map(({ from, source, flags, attack }) => `${from}: /${source}/${flags} is slow with ${attack}`)

describe('a regular expression', () => {
  test('in src is linear in the length of text made against it', () => {
    expect(literals.length).toBeGreaterThan(300)
    expect(listSlow(literals)).toEqual([])
  })

  test('that a function of src makes of text is linear in the length of text made against it', () => {
    const inFunctions = sites.filter(({ isAtTop }) => !isAtTop).map(({ from, code }) => `${from} ${code}`)
    expect(Object.keys(examples).sort()).toEqual(inFunctions.sort())
    const made = Object.entries(examples).flatMap(([from, patterns]) =>
      patterns.map(({ source, flags }) => ({ from, source, flags })),
    )
    expect(listSlow(made)).toEqual([])
  })

  // it loads most of src once more
  testInAll(
    'that a module of src makes of text is linear in the length of text made against it',
    async () => {
      const loaded = [...new Set(sites.filter(({ isAtTop }) => isAtTop).map(({ from }) => from))]
      const made = await recordPatterns(loaded)
      for (const path of loaded)
        expect(made.filter(({ from }) => from === path).length).toBeGreaterThanOrEqual(
          sites.filter(({ from, isAtTop }) => isAtTop && from === path).length,
        )
      expect(listSlow(made)).toEqual([])
    },
  )

  test.each([
    String.raw`\s+$`,
    '(a+)+$',
    'exceed.*context length',
    String.raw`^<(data-\w+) [\s\S]*?^<\/\1>$`,
    String.raw`\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+@`,
    String.raw`^[\d,]*\.?\d+$`,
    // each quote in a string that does not end is one more start
    String.raw`"[^"\\]*(?:\\[\s\S][^"\\]*)*"|-?\d[\d.eE+-]*`,
    String.raw`'(?:[^'\\]|\\.)*'`,
    // each carriage return begins a line
    String.raw`^- (\w+) \(([^)\n]*)\): (.*)$`,
  ])('that is not linear is found: %s', (source) => {
    expect(findSlowText({ source, flags: 'm' })).not.toBeNull()
  })
})
