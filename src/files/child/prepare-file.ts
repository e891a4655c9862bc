import {
  type FileContents,
  fileBounds,
  formatBytes,
  type PrepareJob,
  UnreadableFileError,
} from '../protocol/child-protocol.ts'
import { describeEncoding, prepareText } from './formats/plain-text.ts'
import { type FileReaders, unreadFormat } from './reader-definition.ts'
import { claimedFormat, detectFormat, type FileFormat, toFormatTitle } from './sniff.ts'

/** Reads one file by the format of its bytes. Throws an error with that `format`; `UnreadableFileError` says what to do. */
export const prepareFile = async (job: PrepareJob, readers: FileReaders): Promise<FileContents> => {
  const claimed = claimedFormat(job.name, job.type)
  const { format, bytes } = await detectFormat(job.path, claimed)
  try {
    if (bytes > fileBounds.fileBytes)
      throw new UnreadableFileError(
        `it has ${formatBytes(bytes)}, more than the ${formatBytes(fileBounds.fileBytes)} that are read; split it or remove what is not needed`,
      )
    const contents = await openFormat(job, format, bytes, readers)
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

const openFormat = async (
  job: PrepareJob,
  format: FileFormat,
  bytes: number,
  readers: FileReaders,
): Promise<FileContents> => {
  const read = readers.find(({ files }) => files?.[format])?.files?.[format]
  if (read) return read(job, bytes, readers, format)
  if (format === 'html' || !textFormats.has(format)) throw unreadFormat(format)
  return { ...(await prepareText(job, format === 'markdown' ? format : 'text', bytes)), format }
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
