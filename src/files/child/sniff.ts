import { stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { fileTypeFromBuffer } from 'file-type'
import yauzl from 'yauzl'
import { decodeText } from '../../state/text/decode-text.ts'
import { readHead } from './formats/plain-text.ts'

/** Formats that are recognized and not read, each with the reason and what to do. */
export const unreadReasons = {
  ods: 'ODS spreadsheets are not opened; save it as XLSX or CSV and upload that',
  epub: 'EPUB books are not opened; save it as PDF, DOCX or HTML and upload that',
  rtf: 'RTF documents are not opened; save it as DOCX, ODT or PDF and upload that',
  rar: 'RAR archives are not opened; pack it as ZIP',
  '7z': '7z archives are not opened; pack it as ZIP',
  gzip: 'gzip files are not opened; unpack it first, or pack it as ZIP',
  program: 'it is a program; programs are not opened',
  media: 'it is audio or video, which is not read here; upload a transcript',
  binary: 'it is a binary file of an unknown format; upload it as PDF, DOCX, XLSX, CSV, JSON, HTML or text',
  empty: 'it is empty (0 bytes); check it and upload it again',
}

/** The formats that a name can claim: what they are called, and their extensions. */
const claimableFormats = {
  pdf: { title: 'a PDF', extensions: ['.pdf'] },
  docx: { title: 'a DOCX document', extensions: ['.docx'] },
  odt: { title: 'an ODT document', extensions: ['.odt'] },
  pptx: { title: 'a PPTX presentation', extensions: ['.pptx'] },
  odp: { title: 'an ODP presentation', extensions: ['.odp'] },
  xlsx: { title: 'an XLSX workbook', extensions: ['.xlsx'] },
  ods: { title: 'an ODS spreadsheet', extensions: ['.ods'] },
  epub: { title: 'an EPUB book', extensions: ['.epub'] },
  rtf: { title: 'an RTF document', extensions: ['.rtf'] },
  zip: { title: 'a ZIP archive', extensions: ['.zip'] },
  image: {
    title: 'an image',
    extensions: ['.png', '.jpg', '.jpeg', '.gif', '.webp', '.bmp', '.tif', '.tiff'],
  },
  html: { title: 'HTML', extensions: ['.html', '.htm', '.xhtml'] },
  markdown: { title: 'Markdown', extensions: ['.md', '.markdown'] },
  csv: { title: 'a CSV table', extensions: ['.csv', '.tsv', '.tab', '.psv'] },
  json: { title: 'JSON', extensions: ['.json'] },
  ndjson: { title: 'JSON lines', extensions: ['.jsonl', '.ndjson'] },
  text: { title: 'plain text', extensions: ['.txt', '.log', '.xml', '.yaml', '.yml'] },
  ole: { title: 'an old office file', extensions: ['.doc', '.xls', '.ppt'] },
}
type ClaimableFormat = keyof typeof claimableFormats

/** The format of a file. */
export type FileFormat = 'ole' | ClaimableFormat | keyof typeof unreadReasons

/** What a format is called. */
export const toFormatTitle = (format: FileFormat): string =>
  format in claimableFormats ? claimableFormats[format as ClaimableFormat].title : format

const probedBytes = 64 * 1024

/** The formats of the types that file-type finds, by its extensions. Audio and video are known by their media type. */
const formatsByFoundType: Record<string, FileFormat> = {
  pdf: 'pdf',
  rtf: 'rtf',
  cfb: 'ole',
  gz: 'gzip',
  'tar.gz': 'gzip',
  rar: 'rar',
  '7z': '7z',
  elf: 'program',
  exe: 'program',
  ...Object.fromEntries(
    ['png', 'apng', 'jpg', 'gif', 'webp', 'bmp', 'avif', 'heic', 'tif', 'cr2', 'nef', 'dng', 'arw'].map(
      (extension) => [extension, 'image' as const],
    ),
  ),
}

/** First bytes of formats that file-type finds only where it sees more than the probe, or an undamaged file. */
const formatsByFirstBytes: readonly [start: string, format: FileFormat][] = [
  ['II*\0', 'image'],
  ['MM\0*', 'image'],
  ['\x89PNG', 'image'],
  ['\xff\xd8\xff', 'image'],
  ['\x1f\x8b', 'gzip'],
  ['OggS', 'media'],
  ['ID3', 'media'],
]

/** The format of binary bytes; null: unknown. */
const detectBinaryFormat = async (probe: Uint8Array, start: string): Promise<FileFormat | null> => {
  const type = await fileTypeFromBuffer(probe).catch(() => undefined)
  if (type === undefined) return formatsByFirstBytes.find(([bytes]) => start.startsWith(bytes))?.[1] ?? null
  return formatsByFoundType[type.ext] ?? (/^(audio|video)\//.test(type.mime) ? 'media' : null)
}

const formatsByMediaType: readonly [pattern: RegExp, format: FileFormat][] = [
  [/^text\/(csv|tab-separated-values)/, 'csv'],
  [/(x-ndjson|jsonl|json-lines)/, 'ndjson'],
  [/[/+]json/, 'json'],
  [/^text\/html|xhtml/, 'html'],
  [/^text\/(x-)?markdown/, 'markdown'],
]

/** The format that a file's name or media type claims; null: none. */
export const claimedFormat = (name: string, type: string): FileFormat | null => {
  const extension = extname(name).toLowerCase()
  const formats = Object.keys(claimableFormats) as ClaimableFormat[]
  const byName = formats.find((format) => claimableFormats[format].extensions.includes(extension))
  return byName ?? formatsByMediaType.find(([pattern]) => pattern.test(type))?.[1] ?? null
}

/** Whether all lines but the last, which the probe may cut, have the same cells between tabs, and the first a name for each. */
const isTabbed = (text: string): boolean => {
  const lines = text.trim().split(/[\r\n]+/, 100)
  const [names = [], ...rows] = lines.map((line) => line.split('\t'))
  if (names.length < 2 || names.some((name) => name.trim() === '') || rows.length < 2) return false
  return rows.slice(0, -1).every(({ length }) => length === names.length)
}

const detectTextFormat = (text: string, claimed: FileFormat | null): FileFormat => {
  if (/^\s*(<!doctype html|<html[\s>])/i.test(text)) return 'html'
  if (text.startsWith('{\\rtf')) return 'rtf'
  if (claimed === 'csv' && /^\s*(\[\s*)?\{\s*"[^"\n]*"\s*:/.test(text)) return 'json'
  if (claimed === 'text' && isTabbed(text)) return 'csv'
  const texts: readonly (FileFormat | null)[] = ['html', 'markdown', 'text', 'csv', 'json', 'ndjson']
  return claimed !== null && texts.includes(claimed) ? claimed : 'text'
}

const officeParts: Record<string, FileFormat> = {
  'word/document.xml': 'docx',
  'ppt/presentation.xml': 'pptx',
  'xl/workbook.xml': 'xlsx',
}

/** What the part `mimetype` of an OpenDocument or EPUB file begins with. */
const formatsByMimetype: readonly [start: string, format: FileFormat][] = [
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.presentation', 'odp'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/epub+zip', 'epub'],
]

/**
 * An office document is a ZIP with its main part, or one that says what it is. Reads the directory at the end, as the readers do: what file-type reads
 * in the local headers may differ.
 */
const detectZipFormat = async (path: string): Promise<FileFormat> => {
  const zip = await yauzl.openPromise(path, { autoClose: false }).catch(() => null)
  if (zip === null) return 'zip'
  let count = 0
  try {
    for await (const entry of zip.eachEntry()) {
      count += 1
      const format = officeParts[entry.fileName]
      if (format) return format
      if (entry.fileName === 'mimetype' && entry.uncompressedSize < 100) {
        const type = await readText(await zip.openReadStreamPromise(entry))
        const found = formatsByMimetype.find(([start]) => type.startsWith(start))
        if (found) return found[1]
      }
      if (count === 200) break
    }
    return 'zip'
  } finally {
    zip.close()
  }
}

/** The format of a file by its bytes; a name or type decides only between kinds of text. `bytes`: its size. */
export const detectFormat = async (
  path: string,
  claimed: FileFormat | null,
): Promise<{ format: FileFormat; bytes: number }> => {
  const { size: bytes } = await stat(path)
  if (bytes === 0) return { format: 'empty', bytes }
  const probe = await readHead(path, probedBytes)
  const start = probe.toString('latin1', 0, 1024)
  if (start.startsWith('PK\u0003\u0004') || start.startsWith('PK\u0005\u0006'))
    return { format: await detectZipFormat(path).catch(() => 'zip' as const), bytes }
  // text may begin like a program or a bitmap, but no binary format reads as text
  const text = decodeText(probe)
  const format = text === null ? await detectBinaryFormat(probe, start) : null
  if (format !== null) return { format, bytes }
  if (start.includes('%PDF-')) return { format: 'pdf', bytes }
  return { format: text === null ? 'binary' : detectTextFormat(text, claimed), bytes }
}
