import { open } from 'node:fs/promises'
import { extname } from 'node:path'
import yauzl from 'yauzl'
import { decodeText } from '../../../state/files/decode-text.ts'

export type Format =
  | 'pdf'
  | 'docx'
  | 'pptx'
  | 'xlsx'
  | 'zip'
  | 'image'
  | 'html'
  | 'markdown'
  | 'text'
  | 'csv'
  | 'json'
  | 'ndjson'
  | 'ole'
  | 'rar'
  | '7z'
  | 'gzip'
  | 'program'
  | 'media'
  | 'binary'
  | 'empty'

const probedBytes = 64 * 1024

const magics: readonly [start: string, format: Format][] = [
  ['%PDF-', 'pdf'],
  ['PK\u0003\u0004', 'zip'],
  ['PK\u0005\u0006', 'zip'],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'ole'],
  ['\x89PNG\r\n\x1a\n', 'image'],
  ['\xff\xd8\xff', 'image'],
  ['GIF8', 'image'],
  ['II*\u0000', 'image'],
  ['MM\u0000*', 'image'],
  ['\x1f\x8b', 'gzip'],
  ['Rar!', 'rar'],
  ["7z\xbc\xaf'\x1c", '7z'],
  ['\x7fELF', 'program'],
  ['MZ', 'program'],
  ['ID3', 'media'],
  ['OggS', 'media'],
  ['fLaC', 'media'],
]

const byMagic = (start: string): Format | null => {
  const found = magics.find(([magic]) => start.startsWith(magic))?.[1]
  // two letters may begin a text as well
  if (found === 'program' && start.startsWith('MZ') && !start.includes('\u0000')) return null
  if (found) return found
  if (start.startsWith('RIFF')) return start.slice(8, 12) === 'WEBP' ? 'image' : 'media'
  if (start.startsWith('BM') && start.includes('\u0000')) return 'image'
  if (start.slice(4, 8) === 'ftyp') return /^(avif|heic|heix|mif1)/.test(start.slice(8)) ? 'image' : 'media'
  return start.slice(0, 1024).includes('%PDF-') ? 'pdf' : null
}

const byExtension: Record<string, Format> = {
  '.pdf': 'pdf',
  '.docx': 'docx',
  '.pptx': 'pptx',
  '.xlsx': 'xlsx',
  '.zip': 'zip',
  '.png': 'image',
  '.jpg': 'image',
  '.jpeg': 'image',
  '.gif': 'image',
  '.webp': 'image',
  '.bmp': 'image',
  '.tif': 'image',
  '.tiff': 'image',
  '.html': 'html',
  '.htm': 'html',
  '.xhtml': 'html',
  '.md': 'markdown',
  '.markdown': 'markdown',
  '.csv': 'csv',
  '.tsv': 'csv',
  '.tab': 'csv',
  '.psv': 'csv',
  '.json': 'json',
  '.jsonl': 'ndjson',
  '.ndjson': 'ndjson',
  '.txt': 'text',
  '.log': 'text',
  '.xml': 'text',
  '.yaml': 'text',
  '.yml': 'text',
  '.doc': 'ole',
  '.xls': 'ole',
  '.ppt': 'ole',
}

const byType: readonly [pattern: RegExp, format: Format][] = [
  [/^text\/(csv|tab-separated-values)/, 'csv'],
  [/(x-ndjson|jsonl|json-lines)/, 'ndjson'],
  [/[/+]json/, 'json'],
  [/^text\/html|xhtml/, 'html'],
  [/^text\/(x-)?markdown/, 'markdown'],
]

/** What name and type say a file is; null when they say nothing. */
export const claimedFormat = (name: string, type: string): Format | null =>
  byExtension[extname(name).toLowerCase()] ?? byType.find(([pattern]) => pattern.test(type))?.[1] ?? null

const ofText = (text: string, claimed: Format | null): Format => {
  if (/^\s*(<!doctype html|<html[\s>])/i.test(text)) return 'html'
  const texts: readonly (Format | null)[] = ['html', 'markdown', 'text', 'csv', 'json', 'ndjson']
  return claimed !== null && texts.includes(claimed) ? claimed : 'text'
}

const officeParts: Record<string, Format> = {
  'word/document.xml': 'docx',
  'ppt/presentation.xml': 'pptx',
  'xl/workbook.xml': 'xlsx',
}

/** What a ZIP is: an office document by the parts it has. */
const ofZip = async (path: string): Promise<Format> => {
  const zip = await yauzl.openPromise(path, { autoClose: false }).catch(() => null)
  if (zip === null) return 'zip'
  let seen = 0
  try {
    for await (const { fileName } of zip.eachEntry()) {
      seen += 1
      const office = officeParts[fileName]
      if (office) return office
      if (seen === 200) break
    }
    return 'zip'
  } finally {
    zip.close()
  }
}

/** What the bytes are, whatever the name says. */
export const sniff = async (
  path: string,
  claimed: Format | null,
): Promise<{ format: Format; bytes: number }> => {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    if (size === 0) return { format: 'empty', bytes: 0 }
    const probe = Buffer.alloc(Math.min(size, probedBytes))
    await file.read(probe, 0, probe.length, 0)
    const magic = byMagic(probe.toString('latin1'))
    if (magic === 'zip') return { format: await ofZip(path).catch(() => 'zip' as const), bytes: size }
    if (magic) return { format: magic, bytes: size }
    const text = decodeText(probe)
    return { format: text === null ? 'binary' : ofText(text, claimed), bytes: size }
  } finally {
    await file.close()
  }
}
