import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createScrubber } from '../../../src/infra/secrets/scrubber.ts'

const knowing = (...secrets: string[]) => {
  const scrubber = createScrubber()
  for (const secret of secrets) scrubber.add(secret)
  return scrubber
}
const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 6,
  maxLength: 60,
})

const forms: [name: string, of: (secret: string, before: string) => string][] = [
  ['as it is', (secret, before) => `${before}${secret}`],
  ['in JSON', (secret, before) => JSON.stringify({ [before]: secret })],
  ['in JSON in JSON', (secret) => JSON.stringify({ raw: JSON.stringify({ secret }) })],
  ['in a URL', (secret) => `https://h/?key=${encodeURIComponent(secret)}&x=1`],
  ['in a form', (secret) => new URLSearchParams({ key: secret }).toString()],
  ['in base64', (secret) => Buffer.from(secret).toString('base64')],
  ['in base64 for URLs', (secret) => Buffer.from(secret).toString('base64url')],
]

describe('the scrubber', () => {
  test.each(forms)('removes a secret %s', (_name, of) => {
    fc.assert(
      fc.property(visible, fc.string({ maxLength: 20 }), (secret, before) => {
        const clean = knowing(secret).text(of(secret, before))
        expect(clean).toContain('[secret]')
        // what is left may hold the secret only where it is a part of the mark itself
        expect(clean.replaceAll('[secret]', '')).not.toContain(secret)
      }),
    )
  })

  test('removes a secret from base64 text, wherever it is', () => {
    const secret = 'sk-canary/+?0123456789'
    for (const before of ['', 'u', 'us', 'user:'])
      for (const encoding of ['base64', 'base64url'] as const) {
        const text = Buffer.from(`${before}${secret}:end`).toString(encoding)
        const rest = knowing(secret).text(text).split('[secret]')
        expect(rest).toHaveLength(2)
        for (const part of rest) expect(Buffer.from(part, encoding).toString()).not.toMatch(/canary|0123/)
      }
  })

  test('leaves nothing of secrets that overlap, touch or hold each other', () => {
    const scrubber = knowing('abcdef', 'defghi', 'xxabcdefxx', 'ghijkl')
    expect(scrubber.text('-abcdefghi-')).toBe('-[secret]-')
    expect(scrubber.text('-abcdefabcdef-')).toMatch(/^-(\[secret\])+-$/)
    expect(scrubber.text('-xxabcdefxx-abcdef')).toBe('-[secret]-[secret]')
    expect(scrubber.text('abcdefghijkl')).toBe('[secret]')
  })

  test('removes the beginning of a secret where the text was cut off', () => {
    const scrubber = knowing('sk-nightjar-0123456789', 'sk-nightowl-0123456789')
    for (let length = 6; length < 22; length++)
      for (const end of ['', '…', '… (model x)', '... and so on'])
        expect(scrubber.text(`no ${'sk-nightjar-0123456789'.slice(0, length)}${end}`)).toBe(
          `no [secret]${end}`,
        )
    const others = 'sk-nightingale… sk-night x… sk-nightjar-012345678 …'
    expect(scrubber.text(others)).toBe(others)
    expect(scrubber.text('sk-nightjar-0123456789… sk-nightowl')).toBe('[secret]… [secret]')
  })

  test('looks from the many beginnings of a secret in a text no further than a secret is long', () => {
    const text = 'sk-pro..'.repeat(150_000)
    expect(knowing('sk-proj-0123456789').text(text)).toBe(text)
  })

  test('gives a text without secrets back as it is, and leaves short ones alone', () => {
    const scrubber = knowing('abcde', 'a-long-secret')
    const text = 'abcde a-long-secre\u{1f600}'
    expect(scrubber.text(text)).toBe(text)
    expect(scrubber.text('')).toBe('')
  })

  test('finds each of a thousand secrets, and only those, as a slow search would', () => {
    const secrets = Array.from({ length: 1000 }, () => `sk-proj-${randomBytes(18).toString('base64url')}`)
    const scrubber = knowing(...secrets, ...secrets)
    for (const secret of secrets) expect(scrubber.text(`key ${secret}, then`)).toBe('key [secret], then')
    for (const part of secrets.map((one) => `${one.slice(0, -1)} `)) expect(scrubber.text(part)).toBe(part)
  })
})
