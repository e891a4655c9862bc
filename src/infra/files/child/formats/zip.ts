import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import yauzl from 'yauzl'
import { bounds, type Found, megabytes, type PrepareJob, type Unpacked, Unreadable } from '../protocol.ts'
import { type Archive, openArchive } from './archive.ts'

/** Unpacks the files of an archive into the job's folder under names of ours; each is then a file like any other. */
export const prepareZip = async (job: PrepareJob): Promise<Found> => {
  const archive = await openArchive(job.path)
  try {
    const files = archive.entries.filter(({ fileName }) => !fileName.endsWith('/') && !isLitter(fileName))
    const unpacked: Unpacked[] = []
    const notes: string[] = []
    let kept = 0
    if (files.length > bounds.zipFiles)
      notes.push(`only the first ${bounds.zipFiles} of its ${files.length} files are opened`)
    for (const entry of files.slice(0, bounds.zipFiles)) {
      kept += entry.uncompressedSize
      const fault = nameFault(entry.fileName) ?? sizeFault(entry, kept)
      if (fault !== null) notes.push(`an entry was left out: ${fault}`)
      else unpacked.push(await unpack(archive, entry, join(job.folder, String(unpacked.length))))
    }
    if (unpacked.length === 0 && notes.length === 0) throw new Unreadable('it holds no files')
    return { format: 'zip', facts: { files: unpacked.map(({ name }) => name) }, unpacked, notes }
  } finally {
    archive.close()
  }
}

/** Nothing but file names: a name that leads anywhere else is not followed. */
const nameFault = (name: string): string | null => {
  const shown = JSON.stringify(name.slice(0, 100))
  if (yauzl.validateFileName(name) !== null) return `the name ${shown} leads out of the archive`
  if (name.length > 200) return `the name ${shown}… is too long`
  return /\p{Cc}/u.test(name) ? `the name ${shown} holds control characters` : null
}

/** Its claim of a size holds: unpacking stops where it is exceeded. */
const sizeFault = ({ fileName, uncompressedSize }: yauzl.Entry, kept: number): string | null => {
  const shown = JSON.stringify(fileName.slice(0, 100))
  if (uncompressedSize > bounds.zipFileBytes)
    return `${shown} unpacks to ${megabytes(uncompressedSize)}; upload it by itself`
  return kept > bounds.zipKeptBytes
    ? `${shown} is past the first ${megabytes(bounds.zipKeptBytes)}; pack fewer files`
    : null
}

const isLitter = (name: string): boolean =>
  name.startsWith('__MACOSX/') || /(^|\/)(\.DS_Store|Thumbs\.db)$/.test(name)

const unpack = async (archive: Archive, entry: yauzl.Entry, path: string): Promise<Unpacked> => {
  try {
    await pipeline(Readable.from(archive.chunks(entry)), createWriteStream(path))
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
  return { name: entry.fileName.normalize('NFC'), path, bytes: entry.uncompressedSize }
}
