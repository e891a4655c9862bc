import type { Found, PrepareJob } from './protocol.ts'
import { bounds, megabytes, Unreadable } from './protocol.ts'
import { claimedFormat, type Format, sniff } from './sniff.ts'

/** Opens one file by what its bytes are. Throws Unreadable with what to do where nothing can be read of it. */
export const prepareFile = async (job: PrepareJob): Promise<Found> => {
  const claimed = claimedFormat(job.name, job.type)
  const { format, bytes } = await sniff(job.path, claimed)
  try {
    if (bytes > bounds.fileBytes)
      throw new Unreadable(
        `it has ${megabytes(bytes)}, more than the ${megabytes(bounds.fileBytes)} that are read; split it or leave out what is not needed`,
      )
    const found = await open(job, format, bytes)
    const mislabelled = claimed !== null && claimed !== format && !sameFamily(claimed, format)
    if (mislabelled)
      found.notes.unshift(`it is ${nameOf(format)}, although its name or type says ${nameOf(claimed)}`)
    return found
  } catch (error) {
    throw Object.assign(error as Error, { format })
  }
}

const open = async (job: PrepareJob, format: Format, bytes: number): Promise<Found> => {
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
      return (await import('./formats/text.ts')).prepareText(job, format, bytes)
    case 'csv':
    case 'xlsx':
    case 'json':
    case 'ndjson':
      return (await import('./tables/prepare.ts')).prepareTables(job, format, bytes)
    case 'image':
      return (await import('./formats/image.ts')).prepareImage(job)
    case 'zip':
      return (await import('./formats/zip.ts')).prepareZip(job)
    default:
      throw new Unreadable(reasons[format])
  }
}

const reasons: Record<
  Exclude<
    Format,
    | 'pdf'
    | 'docx'
    | 'pptx'
    | 'html'
    | 'markdown'
    | 'text'
    | 'csv'
    | 'xlsx'
    | 'json'
    | 'ndjson'
    | 'image'
    | 'zip'
  >,
  string
> = {
  ole: 'it is an old or an encrypted office file; save it without a password as DOCX, XLSX, PPTX or PDF and upload that',
  rar: 'RAR archives are not opened; pack it as ZIP',
  '7z': '7z archives are not opened; pack it as ZIP',
  gzip: 'gzip files are not opened; unpack it first, or pack it as ZIP',
  program: 'it is a program; programs are not opened',
  media: 'it is sound or video, which is not read here; upload a transcript',
  binary: 'it is a binary file of no known format; upload it as PDF, DOCX, XLSX, CSV, JSON, HTML or text',
  empty: 'it is empty (0 bytes); check it and upload it again',
}

const names: Partial<Record<Format, string>> = {
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
const nameOf = (format: Format): string => names[format] ?? format

const families: readonly (readonly Format[])[] = [
  ['markdown', 'text'],
  ['json', 'ndjson'],
  ['csv', 'text'],
  ['html', 'text'],
]
const sameFamily = (a: Format, b: Format): boolean =>
  families.some((family) => family.includes(a) && family.includes(b))
