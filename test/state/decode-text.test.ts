import { describe, expect, test } from 'vitest'
import { decodeText, guessEncoding } from '../../src/state/text/decode-text.ts'

/** Encodes a text, by decoding every byte and pair of the encoding once. */
const encodeAs = (encoding: string): ((text: string) => Uint8Array) => {
  const decoder = new TextDecoder(encoding)
  const bytesByCharacter = new Map<string, number[]>()
  for (let lead = 0xfe; lead >= 0x81; lead -= 1)
    for (let trail = 0xfe; trail >= 0x40; trail -= 1) {
      const text = decoder.decode(Uint8Array.of(lead, trail))
      if ([...text].length === 1 && text !== '\ufffd') bytesByCharacter.set(text, [lead, trail])
    }
  return (text) =>
    Uint8Array.from(
      [...text].flatMap((character) => bytesByCharacter.get(character) ?? [character.charCodeAt(0)]),
    )
}

const samples: Record<string, readonly string[]> = {
  gb18030: [
    '北京;上海;1',
    '姓名,城市\n张伟,乌鲁木齐\n李娜,呼和浩特\n王芳,哈尔滨\n',
    '市议会为自行车桥拨款48213欧元,下次会议在2026年11月30日。',
    '饕餮、魑魅、耄耋、龃龉',
    '你好',
  ],
  big5: [
    '市議會撥款四萬八千歐元。',
    '臺北市,高雄市\n',
    '下次會議在2026年11月30日舉行,請準時出席。',
    '陳先生',
  ],
  shift_jis: [
    '市議会は48213ユーロの予算を決めた。',
    '東京都,大阪府\n',
    'こんにちは',
    'テスト',
    '次の会議は十一月三十日です。',
  ],
}

describe.each(Object.entries(samples))('%s', (encoding, texts) => {
  const encode = encodeAs(encoding)
  test.each(texts)('is recognized in %s', (text) => {
    const bytes = encode(text)
    expect([guessEncoding(bytes), decodeText(bytes)]).toEqual([encoding, text])
  })
})

const bytesOf1252: Record<string, number> = { '€': 0x80, œ: 0x9c }

test.each([
  'Ulm zahlt 48213 Euro für die Brücke.',
  'Müller;Jürgen;Köln\nSchäfer;Käthe;Lübeck\n',
  'Un été à la plage, où le cœur a ses raisons',
  'Año nuevo, señor: ¿qué tal mañana?',
  'ÄÖÜ ÉÈÊ',
  'naïve café, 20 °C, 5 £',
  'Es kostet 48 €',
])('Windows-1252 is recognized in %s', (text) => {
  const bytes = Uint8Array.from(
    [...text].map((character) => bytesOf1252[character] ?? character.charCodeAt(0)),
  )
  expect([guessEncoding(bytes), decodeText(bytes)]).toEqual(['windows-1252', text])
})

test.each([
  'Name,City\r\nAnn,Köln\r\n',
  'Город;Сумма\nМосква;12,50\n',
  '姓名,城市,金额\n张一,北京,12.50\n李娜,　上海,7\n',
  'naïve 😀 text\n',
])('UTF-16 without a mark is recognized in %s', (text) => {
  const little = Buffer.from(text, 'utf16le')
  expect(decodeText(little)).toBe(text)
  expect(decodeText(Buffer.from(little).swap16())).toBe(text)
})

test('what has zero bytes and is not such a text is binary', () => {
  const samples = new Int16Array(2000).map((_, at) => Math.round(9000 * Math.sin(at / 7)))
  expect(decodeText(new Uint8Array(samples.buffer))).toBeNull()
  expect(decodeText(Buffer.from('a,b\nname\0\0\0\0', 'latin1'))).toBeNull()
  expect(decodeText(Buffer.from('a\0b\0\ud800\0', 'utf16le'))).toBeNull()
})

test('UTF-8 is UTF-8 whatever its pairs are, and Chinese alone is UTF-16 with its mark', () => {
  expect(decodeText(Buffer.from('für 北京 かな'))).toBe('für 北京 かな')
  expect(decodeText(Buffer.from('\ufeff北京', 'utf16le'))).toBe('北京')
  expect(decodeText(Buffer.from('a\0b'))).toBeNull()
})
