import { describe, expect, test } from 'vitest'
import { toCanonicalJson } from '../../src/features/canonical-json.ts'

describe('canonical JSON', () => {
  test('is as in RFC 8785, section 3.2.2: literals, numbers and strings', () => {
    const value = JSON.parse(
      String.raw`{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`,
    )
    expect(toCanonicalJson(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  test('sorts members as in RFC 8785, section 3.2.3: by UTF-16 code units', () => {
    const value = JSON.parse(
      String.raw`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`,
    )
    const values = [...toCanonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, text]) => text)
    expect(values).toEqual([
      ...['Carriage Return', 'One', 'Control', 'Latin Small Letter O With Diaeresis', 'Euro Sign'],
      ...['Emoji: Grinning Face', 'Hebrew Letter Dalet With Dagesh'],
    ])
  })

  test.for([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ] as const)('writes the double %s of RFC 8785, appendix B, as %s', ([hex, text]) => {
    expect(toCanonicalJson(Buffer.from(hex, 'hex').readDoubleBE())).toBe(text)
  })

  test('refuses what I-JSON cannot hold, and leaves out nulls on request alone', () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '\ud800', [undefined], 1n])
      expect(() => toCanonicalJson(value)).toThrow(TypeError)
    let deep: unknown = 1
    for (let i = 0; i < 200; i += 1) deep = [deep]
    expect(() => toCanonicalJson(deep)).toThrow('nested deeper')
    expect(toCanonicalJson({ toJSON: 1, a: 2 })).toBe('{"a":2,"toJSON":1}')
    const value = { b: null, a: [null, { c: null }], d: undefined }
    expect(toCanonicalJson(value)).toBe('{"a":[null,{"c":null}],"b":null}')
    expect(toCanonicalJson(value, { withoutNulls: true })).toBe('{"a":[null,{}]}')
  })
})
