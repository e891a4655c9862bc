import {
  type FileContents,
  fileBounds,
  formatBytes,
  type PrepareJob,
  UnreadableFileError,
} from '../protocol/child-protocol.ts'
import { describeEncoding } from './formats/plain-text.ts'
import { claimedFormat, detectFormat, type FileFormat, toFormatTitle, unreadReasons } from './sniff.ts'

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
    if (textFormats.has(format)) contents.notes.push(...(await describeEncoding(job.path)))
    if (claimed !== null && claimed !== format && !sameFamily(claimed, format))
      contents.notes.unshift(
        `it is ${toFormatTitle(format)}, although its name or type says ${toFormatTitle(claimed)}`,
      )
    // it becomes a part of the state, which every worker of the session holds
    if (JSON.stringify(contents).length > fileBounds.replyChars)
      throw new UnreadableFileError(
        `its names, pages and tables take more than ${formatBytes(fileBounds.replyChars)} to describe; split it`,
      )
    return contents
  } catch (error) {
    throw Object.assign(error as Error, { format })
  }
}

const openFormat = async (job: PrepareJob, format: FileFormat, bytes: number): Promise<FileContents> => {
  switch (format) {
    case 'pdf':
      return (await import('./formats/pdf.ts')).preparePdf(job, bytes)
    case 'docx':
      return (await import('./formats/docx.ts')).prepareDocx(job)
    case 'odt':
    case 'odp':
      return (await import('./formats/open-document.ts')).prepareOpenDocument(job, format)
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
    case 'ole':
      throw new UnreadableFileError(
        await (await import('./formats/compound-file.ts')).explainCompoundFile(job.path),
      )
    default:
      throw new UnreadableFileError(unreadReasons[format])
  }
}

const textFormats: ReadonlySet<FileFormat> = new Set(['html', 'markdown', 'text', 'csv', 'json', 'ndjson'])

const families: readonly (readonly FileFormat[])[] = [
  ['markdown', 'text'],
  ['json', 'ndjson'],
  ['csv', 'text'],
  ['html', 'text'],
]
const sameFamily = (a: FileFormat, b: FileFormat): boolean =>
  families.some((family) => family.includes(a) && family.includes(b))
