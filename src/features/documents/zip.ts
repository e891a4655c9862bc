import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import yauzl from 'yauzl'
import {
  type FileContents,
  fileBounds,
  formatBytes,
  type PrepareJob,
  type UnpackedFile,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import { type Archive, openArchive } from './archive.ts'

/** Unpacks the files of an archive into the job's folder, under names of ours; each is then a file like any other. */
export const prepareZip = async (job: PrepareJob): Promise<FileContents> => {
  using archive = await openArchive(job.path)
  const files = archive.entries.filter(({ fileName }) => !fileName.endsWith('/') && !isSystemFile(fileName))
  const unpacked: UnpackedFile[] = []
  const notes: string[] = []
  let totalBytes = 0
  if (files.length > fileBounds.zipFiles)
    notes.push(`only the first ${fileBounds.zipFiles} of its ${files.length} files are opened`)
  for (const entry of files.slice(0, fileBounds.zipFiles)) {
    totalBytes += entry.uncompressedSize
    const reason = findObstacle(entry, totalBytes)
    if (reason !== null) notes.push(`an entry is skipped: ${reason}`)
    else unpacked.push(await unpack(archive, entry, join(job.folder, String(unpacked.length))))
  }
  if (unpacked.length === 0 && notes.length === 0) throw new UnreadableFileError('it holds no files')
  return { format: 'zip', facts: { files: unpacked.map(({ name }) => name) }, unpacked, notes }
}

/** Why an entry is not unpacked; null: it is. Its claimed size counts, since unpacking stops where that is exceeded. */
const findObstacle = ({ fileName, uncompressedSize }: yauzl.Entry, totalBytes: number): string | null => {
  const quoted = JSON.stringify(fileName.slice(0, 100))
  if (yauzl.validateFileName(fileName) !== null) return `the name ${quoted} leads out of the archive`
  if (fileName.length > 200) return `the name ${quoted}… is too long`
  if (/\p{Cc}/u.test(fileName)) return `the name ${quoted} holds control characters`
  if (uncompressedSize > fileBounds.zipFileBytes)
    return `${quoted} unpacks to ${formatBytes(uncompressedSize)}; upload it by itself`
  return totalBytes > fileBounds.zipKeptBytes
    ? `${quoted} is past the first ${formatBytes(fileBounds.zipKeptBytes)}; pack fewer files`
    : null
}

const isSystemFile = (name: string): boolean => /^__MACOSX\/|(^|\/)(\.DS_Store|Thumbs\.db)$/.test(name)

/** What an error leaves of it goes with the job's folder. */
const unpack = async (archive: Archive, entry: yauzl.Entry, path: string): Promise<UnpackedFile> => {
  await pipeline(Readable.from(archive.chunks(entry)), createWriteStream(path))
  return { name: entry.fileName.normalize('NFC'), path, bytes: entry.uncompressedSize }
}
