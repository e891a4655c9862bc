import { deflateRawSync, gzipSync } from 'node:zlib'
import { docxParts, paragraph, pdfOf, pngOf, pptxParts, xlsxParts, zipOf } from './file-samples.ts'

/** Forty files that no caller should be able to hurt anybody with: name, bytes, and what the note under it must say. */
export type Hostile = [name: string, bytes: string | Uint8Array, note: RegExp]

const xml = '<?xml version="1.0"?>'
const bomb = `${xml}<!DOCTYPE lolz [<!ENTITY a "${'ha'.repeat(50)}">${Array.from({ length: 8 }, (_, at) => `<!ENTITY ${'bcdefghi'[at]} "${`&${'abcdefgh'[at]};`.repeat(10)}">`).join('')}]>`
const external = `${xml}<!DOCTYPE x [<!ENTITY p SYSTEM "file:///etc/passwd">]>`
const zeros = (megabytes: number): Buffer => Buffer.alloc(megabytes * 1024 * 1024)

/** A ZIP of one entry written by hand: its name, its flags and the sizes it claims are what the test says. */
const rawZip = (
  name: string,
  data: Buffer,
  { flags = 0, claimed = data.length, method = 8 } = {},
): Buffer => {
  const packed = method === 8 ? deflateRawSync(data) : data
  const label = Buffer.from(name)
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50, 0)
  local.writeUInt16LE(20, 4)
  local.writeUInt16LE(flags, 6)
  local.writeUInt16LE(method, 8)
  local.writeUInt32LE(packed.length, 18)
  local.writeUInt32LE(claimed, 22)
  local.writeUInt16LE(label.length, 26)
  const central = Buffer.alloc(46)
  central.writeUInt32LE(0x02014b50, 0)
  central.writeUInt16LE(20, 6)
  central.writeUInt16LE(flags, 8)
  central.writeUInt16LE(method, 10)
  central.writeUInt32LE(packed.length, 20)
  central.writeUInt32LE(claimed, 24)
  central.writeUInt16LE(label.length, 28)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length + label.length, 12)
  end.writeUInt32LE(local.length + label.length + packed.length, 16)
  return Buffer.concat([local, label, packed, central, label, end])
}

const nested = async (depth: number): Promise<Buffer> =>
  depth === 0 ? zipOf({ 'a.txt': 'deep' }) : zipOf({ 'inner.zip': await nested(depth - 1) })

const manyEntries = async (count: number): Promise<Buffer> =>
  zipOf(Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}.txt`, 'x'])))

export const hostileFiles = async (): Promise<Hostile[]> => {
  const pdf = await pdfOf([['Hello'], ['World']])
  const docx = await zipOf(docxParts(paragraph('Hello')))
  const book = await zipOf(xlsxParts({ S: '<row><c r="A1"><v>1</v></c></row>' }))
  const cell = (at: string) => `<row><c r="${at}"><v>1</v></c></row>`
  return [
    ['empty.pdf', '', /it is empty/],
    // opened, but for what is too deep in it
    ['nested.zip', await nested(3), /^$/],
    ['blank.csv', ' \n\n \n', /no rows/],
    ['cut.pdf', pdf.subarray(0, 300), /damaged or incomplete|no text/],
    ['head-only.pdf', '%PDF-1.7\n', /damaged or incomplete/],
    [
      'noise.pdf',
      Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(5000, 0xab)]),
      /damaged or incomplete/,
    ],
    ['no-text.pdf', await pdfOf([[], []]), /no text/],
    ['cut.docx', docx.subarray(0, 400), /damaged or incomplete/],
    ['cut.xlsx', book.subarray(0, 500), /damaged or incomplete/],
    ['cut.zip', (await zipOf({ 'a.txt': 'x'.repeat(5000) })).subarray(0, 60), /damaged or incomplete/],
    ['old.doc', Buffer.from('d0cf11e0a1b11ae1'.padEnd(2000, '0'), 'hex'), /old or an encrypted office file/],
    ['locked.xlsx', Buffer.from('d0cf11e0a1b11ae1'.padEnd(2000, '0'), 'hex'), /without a password/],
    ['locked.zip', rawZip('a.txt', Buffer.from('x'), { flags: 1 }), /encrypted with a password/],
    ['bomb.zip', rawZip('zeros.bin', zeros(20)), /unpacks to more than 200 times/],
    [
      'big.zip',
      rawZip('zeros.bin', Buffer.from('x'), { claimed: 3_000_000_000 }),
      /unpacks to 2861 MB|left out/,
    ],
    ['liar.zip', rawZip('a.txt', zeros(2), { claimed: 10 }), /damaged or incomplete|unpacks to more/],
    ['up.zip', rawZip('../../etc/cron.d/x', Buffer.from('x')), /leads out of the archive/],
    ['absolute.zip', rawZip('/etc/passwd', Buffer.from('x')), /leads out of the archive/],
    ['backslash.zip', rawZip('..\\..\\x.txt', Buffer.from('x')), /leads out of the archive/],
    ['control.zip', rawZip('a\u0000b\n.txt', Buffer.from('x')), /control characters/],
    ['method.zip', rawZip('a.txt', Buffer.from('x'), { method: 99 }), /packed in a way that is not read/],
    ['many.zip', await manyEntries(2001), /more than 2000 entries/],
    ['nothing.zip', await zipOf({}), /holds no files|cannot be read/],
    ['entity.docx', await zipOf(docxParts(paragraph('&i;'), bomb)), /DTD/],
    ['external.docx', await zipOf(docxParts(paragraph('&p;'), external)), /DTD/],
    [
      'zeros.docx',
      await zipOf({ ...docxParts(paragraph('x')), 'word/media/a.bin': zeros(20) }),
      /unpacks to more than 200 times/,
    ],
    [
      'entity.xlsx',
      await zipOf({
        ...xlsxParts({ S: cell('A1') }),
        'xl/sharedStrings.xml': `${bomb}<sst><si><t>&i;</t></si></sst>`,
      }),
      /DTD/,
    ],
    ['far.xlsx', await zipOf(xlsxParts({ S: cell('ZZZZZZZZ1') })), /no rows/],
    ['broken.xlsx', await zipOf(xlsxParts({ S: '<row><c></row>' })), /damaged or incomplete/],
    [
      'entity.pptx',
      await zipOf({
        ...pptxParts([{ title: 'a', lines: [] }]),
        'ppt/slides/slide1.xml': `${bomb}<x>&i;</x>`,
      }),
      /DTD/,
    ],
    ['no-slides.pptx', await zipOf(pptxParts([])), /no slides/],
    ['deep.html', `<html>${'<div>'.repeat(50_000)}x`, /nested more than/],
    ['script.html', '<html><script>while(true){}</script></html>', /no text/],
    ['huge.png', pngOf(100_000, 100_000), /100000 x 100000 pixels/],
    ['cut.jpg', Buffer.from('ffd8ffe000104a464946', 'hex'), /damaged or incomplete/],
    ['broken.json', '{"a": [1, 2', /does not parse/],
    ['deep.json', '['.repeat(200_000), /does not parse/],
    ['words.jsonl', 'these are\nno objects\n', /none of its lines/],
    ['program.csv', Buffer.from(`7f454c46${'00'.repeat(500)}`, 'hex'), /it is a program/],
    ['packed.csv', gzipSync('a,b\n1,2\n'), /gzip files are not opened/],
  ]
}
