import { describe, expect, test } from 'vitest'
import {
  consentPage,
  enrolmentPage,
  pageScript,
  toSafeHtml,
} from '../../../../src/features/payments/consent/pages.ts'

describe('a text of others on a page', () => {
  test('is escaped, and isolated in its direction', () => {
    expect(toSafeHtml(`<img src=x onerror="a('b')">&amp;`)).toBe(
      '<bdi>&lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;amp;</bdi>',
    )
    expect(toSafeHtml('Café ☕ 日本 عربي 👍🏽 +1')).toBe('<bdi>Café ☕ 日本 عربي 👍🏽 +1</bdi>')
  })

  test('shows every character that hides or turns others by its code point', () => {
    const codes = [
      ...[
        0x0, 0x9, 0xa, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x2003, 0x200b, 0x200d, 0x200e,
      ],
      ...[0x2028, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x2800, 0x3000, 0x3164, 0xfe0f, 0xfeff, 0xffa0],
      ...[0xd800, 0xe000, 0xe0001, 0xe0041, 0xe0100],
    ]
    for (const code of codes) {
      const hex = code.toString(16).toUpperCase().padStart(4, '0')
      expect(toSafeHtml(`a${String.fromCodePoint(code)}b`)).toBe(
        `<bdi>a<b class="hidden">U+${hex}</b>b</bdi>`,
      )
    }
  })
})

describe('a page', () => {
  test('has no script or style of its own, and no text of others ends its data', () => {
    const html = enrolmentPage(`"></main><script>alert(1)</script>`, { user: `"><script>alert(2)</script>` })
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script src="../consent.js" defer>'])
    expect(html).not.toMatch(/<style|\son\w+=|style=/)
  })

  test('has a script that is valid, and writes no HTML', () => {
    expect(() => new Function(pageScript)).not.toThrow()
    expect(pageScript).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval/)
  })

  test('of an unsigned offer in the demo profile names no payee as known', () => {
    const facts = {
      ...{ payee: 'Demo Merchant', payee_issuer: 'demo:Demo Merchant', total: '199.00 USD', items: [] },
      ...{ refund_days: 30, offer_ends: null, instrument: 'CARD', shares: [], warnings: [] },
    }
    const show = (demo: boolean) => consentPage('{}', { ...facts, demo }, '2026-11-23T12:00:00Z', {})
    expect(show(true)).toContain('The offer is not signed, and no money moves.')
    expect(show(true)).not.toContain('who signed this offer')
    expect(show(false)).toContain('who signed this offer')
  })
})
