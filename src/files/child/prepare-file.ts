import type { FileContents, PrepareJob } from '../protocol/child-protocol.ts'
import { fileBounds, formatBytes, UnreadableFileError } from '../protocol/child-protocol.ts'
import { claimedFormat, detectFormat, type FileFormat } from './sniff.ts'

/** Reads one file by the format of its bytes. Throws an error with that `format`; `UnreadableFileError` says what to do. */
export const prepareFile = async (job: PrepareJob): Promise<FileContents> => {
  const claimed = claimedFormat(job.name, job.type)
  const { format, bytes } = await detectFormat(job.path, claimed)
  try {
    if (bytes > fileBounds.fileBytes)
      throw new UnreadableFileError(
        `it has ${formatBytes(bytes)}, more than the ${formatBytes(fileBounds.fileBytes)} that are read; split it or remove what is not needed`,
      )
    const contents = await openFormat(job, format, bytes)
    if (claimed !== null && claimed !== format && !sameFamily(claimed, format))
      contents.notes.unshift(
        `it is ${toFormatName(format)}, although its name or type says ${toFormatName(claimed)}`,
      )
    return contents
  } catch (error) {
    throw Object.assign(error as Error, { format })
  }
}

/** Formats that are recognized and not read. */
type UnreadFormat = 'ole' | 'rar' | '7z' | 'gzip' | 'program' | 'media' | 'binary' | 'empty'

const openFormat = async (job: PrepareJob, format: FileFormat, bytes: number): Promise<FileContents> => {
  switch (format) {
    case 'pdf':
      return (await import('./formats/pdf.ts')).preparePdf(job, bytes)
    case 'docx':
      return (await import('./formats/docx.ts')).prepareDocx(job)
    case 'pptx':
      return (await import('./formats/pptx.ts')).preparePptx(job)
    case 'html':
      return (await import('./formats/html.ts')).prepareHtml(job, bytes)
    case 'markdown':
    case 'text':
      return (await import('./formats/plain-text.ts')).prepareText(job, format, bytes)
    case 'csv':
    case 'xlsx':
    case 'json':
    case 'ndjson':
      return (await import('./tables/prepare-tables.ts')).prepareTables(job, format, bytes)
    case 'image':
      return (await import('./formats/image.ts')).prepareImage(job)
    case 'zip':
      return (await import('./formats/zip.ts')).prepareZip(job)
    default:
      throw new UnreadableFileError(reasons[format])
  }
}

const reasons: Record<UnreadFormat, string> = {
  ole: 'it is an old or an encrypted office file; save it without a password as DOCX, XLSX, PPTX or PDF and upload that',
  rar: 'RAR archives are not opened; pack it as ZIP',
  '7z': '7z archives are not opened; pack it as ZIP',
  gzip: 'gzip files are not opened; unpack it first, or pack it as ZIP',
  program: 'it is a program; programs are not opened',
  media: 'it is audio or video, which is not read here; upload a transcript',
  binary: 'it is a binary file of an unknown format; upload it as PDF, DOCX, XLSX, CSV, JSON, HTML or text',
  empty: 'it is empty (0 bytes); check it and upload it again',
}

const names: Partial<Record<FileFormat, string>> = {
  pdf: 'a PDF',
  docx: 'a DOCX document',
  pptx: 'a PPTX presentation',
  xlsx: 'an XLSX workbook',
  zip: 'a ZIP archive',
  image: 'an image',
  html: 'HTML',
  csv: 'a CSV table',
  json: 'JSON',
  ndjson: 'JSON lines',
  ole: 'an old office file',
  text: 'plain text',
  markdown: 'Markdown',
}
const toFormatName = (format: FileFormat): string => names[format] ?? format

const families: readonly (readonly FileFormat[])[] = [
  ['markdown', 'text'],
  ['json', 'ndjson'],
  ['csv', 'text'],
  ['html', 'text'],
]
const sameFamily = (a: FileFormat, b: FileFormat): boolean =>
  families.some((family) => family.includes(a) && family.includes(b))
