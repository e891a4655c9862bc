import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readLinePage } from '../../src/files/child/line-page.ts'
import { findFile } from '../../src/state/files/find-file.ts'
import type { LineQuery } from '../../src/state/ports/files.ts'
import { decodeText } from '../../src/state/text/decode-text.ts'

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)
const wide = (text: string, mark: string): Buffer => Buffer.from(mark + text, 'utf16le')

describe('decodeText', () => {
  test('reads UTF-8, with and without its mark', () => {
    expect(decodeText(Buffer.from('Grüße, 你好\n'))).toBe('Grüße, 你好\n')
    expect(decodeText(Buffer.from('\ufeffa,b'))).toBe('a,b')
    expect(decodeText(bytes())).toBe('')
  })

  test('reads UTF-16 by its mark', () => {
    expect(decodeText(wide('订单 1', '\ufeff'))).toBe('订单 1')
    expect(decodeText(wide('订单 1', '\ufeff').swap16())).toBe('订单 1')
  })

  test('reads GB18030 and Windows-1252 where UTF-8 fails', () => {
    expect(decodeText(bytes(0xc4, 0xe3, 0xba, 0xc3, 0x0a))).toBe('你好\n')
    expect(decodeText(bytes(0x63, 0x61, 0x66, 0xe9, 0x0a))).toBe('café\n')
  })

  test('distinguishes binary files from text', () => {
    expect(decodeText(bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13))).toBeNull()
    expect(decodeText(Buffer.from('%PDF-1.7\nplain'))).toBeNull()
    expect(decodeText(bytes(1, 2, 3, 4))).toBeNull()
    expect(decodeText(Buffer.from('\u001b[31mred\u001b[0m\tok\r\n'))).toContain('red')
  })

  test('gives back any text that has no control characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        fc.pre(!/[\p{Cc}\ufeff]/u.test(text) && !text.startsWith('%PDF'))
        expect(decodeText(Buffer.from(text))).toBe(text)
      }),
    )
  })
})

const readPage = (text: string, query: Partial<LineQuery> = {}) =>
  readLinePage(Buffer.from(text), {
    ...{ first: 1, last: 1_000_000, pattern: null, mode: 'page' },
    ...{ maxLines: 1_000_000, maxBytes: 100_000_000, maxLineChars: 1000, ...query },
  })
const splitLines = (text: string) => readPage(text)?.shown.map((line) => line.text)

test('a page of lines ends lines at \\n and \\r\\n and opens none after the last one', () => {
  expect(splitLines('a\r\nb\n\nc')).toEqual(['a', 'b', '', 'c'])
  expect(splitLines('a\n')).toEqual(['a'])
  expect(splitLines('\n')).toEqual([''])
  expect(splitLines('')).toEqual([])
  const line = fc.string().filter((text) => !/[\r\n]/.test(text))
  fc.assert(
    fc.property(fc.array(line), fc.constantFrom('\n', '\r\n'), (lines, end) => {
      expect(splitLines(lines.map((text) => text + end).join(''))).toEqual(lines)
    }),
  )
})

test('findFile takes the exact name first, then forgives a leading ./ and how accents are encoded', () => {
  const files = ['a.txt', './a.txt', 'Übersicht.md'].map((name) => ({ name }))
  expect(findFile(files, './a.txt')?.name).toBe('./a.txt')
  expect(findFile(files, '/a.txt')?.name).toBe('a.txt')
  expect(findFile(files, './Übersicht.md'.normalize('NFD'))?.name).toBe('Übersicht.md')
  expect(findFile(files, '../a.txt')).toBeUndefined()
  expect(findFile(files, 'A.txt')).toBeUndefined()
  expect(findFile(files, 'b.txt')).toBeUndefined()
})

describe('patterns', () => {
  test.each(['(a', '(?=a)', '(a)\\1', '[z-a]', 'x{1001}', '*', '\\'])(
    '%s is refused with its reason',
    (pattern) => {
      expect(() => readPage('a', { pattern })).toThrow(/^Invalid pattern '[\s\S]*': .+\. The syntax is RE2: /)
    },
  )

  test('any text compiles or is refused, and never crashes', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.constantFrom('page', 'search'), (pattern, line, mode) => {
        try {
          readPage(line, { pattern, mode })
        } catch (error) {
          expect((error as Error).message).toMatch(/^Invalid pattern/)
        }
      }),
    )
  })

  test('patterns that ruin backtracking take linear time', () => {
    expect(readPage(`${'a'.repeat(100_000)}!`, { pattern: '^(a+)+$' })).toMatchObject({ found: 0, total: 1 })
  })
})
