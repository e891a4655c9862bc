import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AddressKind, classifyAddress } from '../../../src/infra/egress/addresses.ts'
import { resolveRedirect } from '../../../src/infra/egress/egress.ts'
import { checkUrl, isPlainlyPrivate } from '../../../src/infra/egress/urls.ts'

/** The registries once more, by arithmetic: [first address, bits, family bits, kind]; the first that fits counts. */
const v4 = (text: string): bigint => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
const v6 = (...groups: number[]): bigint =>
  [...groups, ...Array<number>(8 - groups.length).fill(0)].reduce(
    (sum, part) => sum * 65536n + BigInt(part),
    0n,
  )

type Range = [bigint, number, AddressKind]
const inRange = (value: bigint, [base, bits]: Range, width: number): boolean =>
  value >> BigInt(width - bits) === base >> BigInt(width - bits)

const rangesV4: Range[] = (
  [
    ['127.0.0.0', 8, 'private'],
    ['10.0.0.0', 8, 'private'],
    ['172.16.0.0', 12, 'private'],
    ['192.168.0.0', 16, 'private'],
    ['0.0.0.0', 8, 'special'],
    ['100.64.0.0', 10, 'special'],
    ['169.254.0.0', 16, 'special'],
    ['192.0.0.0', 24, 'special'],
    ['192.0.2.0', 24, 'special'],
    ['192.31.196.0', 24, 'special'],
    ['192.52.193.0', 24, 'special'],
    ['192.88.99.0', 24, 'special'],
    ['192.175.48.0', 24, 'special'],
    ['198.18.0.0', 15, 'special'],
    ['198.51.100.0', 24, 'special'],
    ['203.0.113.0', 24, 'special'],
    ['224.0.0.0', 4, 'special'],
    ['240.0.0.0', 4, 'special'],
    ['168.63.129.16', 32, 'special'],
    ['0.0.0.0', 0, 'public'],
  ] as const
).map(([base, bits, kind]) => [v4(base), bits, kind])

const rangesV6: Range[] = [
  [v6(0, 0, 0, 0, 0, 0, 0, 1), 128, 'private'],
  [v6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, 'special'],
  [v6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, 'special'],
  [v6(0xfc00), 7, 'private'],
  [v6(0x2001), 23, 'special'],
  [v6(0x2001, 0xdb8), 32, 'special'],
  [v6(0x2002), 16, 'special'],
  [v6(0x2620, 0x4f, 0x8000), 48, 'special'],
  [v6(0x3fff), 20, 'special'],
  [v6(0x2000), 3, 'public'],
  [0n, 0, 'special'],
]

const nat64 = v6(0x64, 0xff9b)
const kindByArithmetic = (value: bigint, width: 32 | 128): AddressKind => {
  if (width === 128 && value >> 32n === nat64 >> 32n)
    return kindByArithmetic(value & 0xffffffffn, 32) === 'public' ? 'public' : 'special'
  const ranges = width === 32 ? rangesV4 : rangesV6
  return ranges.find((range) => inRange(value, range, width))?.[2] ?? 'special'
}

const textV4 = (value: bigint): string => [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
const textV6 = (value: bigint): string =>
  Array.from({ length: 8 }, (_, at) => ((value >> BigInt(112 - 16 * at)) & 0xffffn).toString(16)).join(':')

/** Anywhere, and at and around the borders of every range. */
const addressIn = (ranges: Range[], width: 32 | 128) => {
  const last = (1n << BigInt(width)) - 1n
  const border = fc
    .tuple(fc.constantFrom(...ranges), fc.boolean(), fc.bigInt(-2n, 2n))
    .map(([[base, bits], end, off]) => {
      const at = (end ? base + (1n << BigInt(width - bits)) - 1n : base) + off
      return at < 0n ? 0n : at > last ? last : at
    })
  return fc.oneof(fc.bigInt(0n, last), border)
}

describe('addresses', () => {
  test('of IPv4 are judged as the registries say', () => {
    fc.assert(
      fc.property(addressIn(rangesV4, 32), (value) => {
        expect(classifyAddress(textV4(value))).toBe(kindByArithmetic(value, 32))
      }),
      { numRuns: 5000 },
    )
  })

  test('of IPv6 are judged as the registries say, in either notation', () => {
    const withNat64 = fc.oneof(
      addressIn(rangesV6, 128),
      addressIn(rangesV4, 32).map((value) => nat64 + value),
      addressIn(rangesV4, 32).map((value) => v6(0, 0, 0, 0, 0, 0xffff) + value),
    )
    fc.assert(
      fc.property(withNat64, (value) => {
        const kind = kindByArithmetic(value, 128)
        expect(classifyAddress(textV6(value))).toBe(kind)
        expect(classifyAddress(new URL(`http://[${textV6(value)}]`).hostname.slice(1, -1))).toBe(kind)
      }),
      { numRuns: 5000 },
    )
  })

  test('that are invalid count as special', () => {
    for (const text of [
      '',
      'localhost',
      '127.1',
      '0x7f000001',
      'fe80::1%eth0',
      '::1%lo',
      '[::1]',
      '1.2.3.4.5',
    ])
      expect(classifyAddress(text), text).toBe('special')
  })
})

describe('URLs', () => {
  test('of public hosts are fine, with any port', () => {
    for (const url of [
      'https://api.openai.com/v1',
      'HTTPS://API.OpenAI.com/v1',
      'https://api.openai.com:443/v1?x=1',
      'http://example.org:6000/a@b',
      'https://xn--bcher-kva.example/',
      'http://8.8.8.8/',
      'http://[2606:4700::1111]:8080/',
    ])
      expect(checkUrl(url, { allowPrivate: false }), url).toBeNull()
  })

  test('of private hosts are fine where that is allowed, and say so by themselves', () => {
    for (const url of [
      'http://localhost:11434/v1',
      'http://gpu.localhost/',
      'http://127.0.0.1:8000',
      'http://10.1.2.3/v1',
      'http://172.31.0.1/',
      'http://192.168.0.10/',
      'http://[::1]:8000/v1',
      'http://[fd12:3456::1]/',
    ]) {
      expect(checkUrl(url, { allowPrivate: true }), url).toBeNull()
      expect(checkUrl(url, { allowPrivate: false })?.detail, url).toContain('allow_private')
      expect(isPlainlyPrivate(url), url).toBe(true)
    }
  })

  test('that name no private address plainly say nothing by themselves', () => {
    for (const url of [
      'http://127.1/',
      'http://2130706433/',
      'http://[::ffff:10.0.0.1]/',
      'http://169.254.169.254/',
      'http://user@127.0.0.1/',
      'http://example.org/',
      'http://vllm:8000/',
      'nonsense',
    ])
      expect(isPlainlyPrivate(url), url).toBe(false)
  })

  test('whose host reads one way and is another are refused, whatever they lead to', () => {
    const numbers = addressIn(rangesV4, 32).filter((value) => value > 255n)
    fc.assert(
      fc.property(numbers, fc.constantFrom('dec', 'hex', 'oct', 'mapped'), (value, spelling) => {
        const host = {
          dec: String(value),
          hex: `0x${value.toString(16)}`,
          oct: `0${value.toString(8)}`,
          mapped: `[::ffff:${textV4(value)}]`,
        }[spelling]
        expect(checkUrl(`http://${host}/`, { allowPrivate: true })).not.toBeNull()
        expect(isPlainlyPrivate(`http://${host}/`)).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })

  test('any text at all is judged without a throw, and what passes means the host it shows', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.webUrl(),
      fc.string().map((host) => `http://${host}/`),
    )
    fc.assert(
      fc.property(texts, (text) => {
        if (checkUrl(text, { allowPrivate: true }) !== null) return
        expect(text.toLowerCase()).toContain(`://${new URL(text).host}`)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('a redirect', () => {
  const hop = {
    url: 'https://a.example/v1/x?y=1',
    method: 'POST',
    headers: {
      authorization: 'Bearer secret',
      'x-api-key': 'secret',
      cookie: 'secret',
      'content-type': 'application/json',
      Accept: '*/*',
    },
    body: '{}',
    allowPrivate: true,
  }

  test('to another origin carries neither secrets nor permission to reach private addresses', () => {
    for (const location of ['https://b.example/', 'https://a.example:444/', '//b.example/z'])
      expect(resolveRedirect(hop, 307, location)).toMatchObject({
        method: 'POST',
        headers: { 'content-type': 'application/json', Accept: '*/*' },
        body: '{}',
        allowPrivate: false,
      })
    expect(Object.keys(resolveRedirect(hop, 307, 'https://b.example/')?.headers ?? {})).toHaveLength(2)
  })

  test('that turns into a GET loses its body', () => {
    for (const status of [301, 302, 303])
      expect(resolveRedirect(hop, status, '/z')).toEqual({
        url: 'https://a.example/z',
        method: 'GET',
        headers: { authorization: 'Bearer secret', 'x-api-key': 'secret', cookie: 'secret', Accept: '*/*' },
        body: null,
        allowPrivate: true,
      })
  })

  test('from https to http is refused, and other statuses are no redirect', () => {
    expect(() => resolveRedirect(hop, 302, 'http://a.example/')).toThrow('https to http')
    expect(resolveRedirect(hop, 200, '/z')).toBeNull()
    expect(resolveRedirect(hop, 304, '/z')).toBeNull()
    expect(resolveRedirect(hop, 302, null)).toBeNull()
  })
})
