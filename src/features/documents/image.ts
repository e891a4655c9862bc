import { stat } from 'node:fs/promises'
import exifr from 'exifr'
import { imageSize } from 'image-size'
import { readHead } from '../../files/child/formats/plain-text.ts'
import {
  DamagedFileError,
  type FileContents,
  fileBounds,
  type PrepareJob,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import type { Json } from '../../state/runtime-state.ts'

const headBytes = 1024 * 1024
const exifFields =
  'Make Model DateTimeOriginal CreateDate Orientation Software ImageDescription Artist Copyright latitude longitude'.split(
    ' ',
  )

/** Reads the size and the EXIF fields from the first bytes of an image. Never unpacks pixels. */
export const prepareImage = async (job: PrepareJob): Promise<FileContents> => {
  const head = await readHead(job.path, headBytes)
  const { width, height, type = 'image' } = measureImage(head)
  if (Math.max(width, height) > fileBounds.imageSide || width * height > fileBounds.imagePixels)
    throw new UnreadableFileError(
      `it claims ${width} x ${height} pixels, more than is allowed; scale it down and upload it again`,
    )
  const exif = await exifr.parse(head).catch(() => null)
  const { size: bytes } = await stat(job.path)
  const facts: Record<string, Json> = { type, width, height, bytes }
  const exifFacts = readExifFacts(exif as Record<string, unknown> | null)
  if (Object.keys(exifFacts).length > 0) facts.exif = exifFacts
  return { format: 'image', facts, notes: [] }
}

const measureImage = (head: Uint8Array): ReturnType<typeof imageSize> => {
  try {
    return imageSize(head)
  } catch (error) {
    const { message } = error as Error
    if (!/^unsupported/i.test(message)) throw new DamagedFileError(message)
    throw new UnreadableFileError(
      'it is an image of a kind that is not read; save it as PNG or JPEG and upload it',
    )
  }
}

const readExifFacts = (exif: Record<string, unknown> | null): Record<string, Json> =>
  Object.fromEntries(
    exifFields.flatMap((key): [string, Json][] => {
      const value = exif?.[key]
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? [] : [[key, value.toISOString()]]
      if (typeof value === 'number' && Number.isFinite(value)) return [[key, value]]
      return typeof value === 'string' ? [[key, value.slice(0, 200).toWellFormed()]] : []
    }),
  )
