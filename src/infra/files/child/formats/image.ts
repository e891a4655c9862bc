import { open, stat } from 'node:fs/promises'
import exifr from 'exifr'
import { imageSize } from 'image-size'
import type { Json } from '../../../../state/runtime-state.ts'
import { bounds, type Found, type PrepareJob, Unreadable } from '../protocol.ts'

const headBytes = 1024 * 1024
const shown = [
  'Make',
  'Model',
  'DateTimeOriginal',
  'CreateDate',
  'Orientation',
  'Software',
  'ImageDescription',
  'Artist',
  'Copyright',
  'latitude',
  'longitude',
]

/** Size and EXIF, read from the head of the file: pixels are never unpacked. */
export const prepareImage = async (job: PrepareJob): Promise<Found> => {
  const head = await readHead(job.path)
  const { width, height, type = 'image' } = imageSize(head)
  if (width > bounds.imageSide || height > bounds.imageSide || width * height > bounds.imagePixels)
    throw new Unreadable(
      `it says to be ${width} x ${height} pixels, more than is looked at; scale it down and upload it again`,
    )
  const exif = await exifr.parse(head).catch(() => null)
  const { size: bytes } = await stat(job.path)
  const facts: Record<string, Json> = { type, width, height, bytes }
  const read = exifFacts(exif as Record<string, unknown> | null)
  if (Object.keys(read).length > 0) facts.exif = read
  return { format: 'image', facts, notes: [] }
}

const readHead = async (path: string): Promise<Buffer> => {
  const file = await open(path)
  try {
    const buffer = Buffer.alloc(headBytes)
    const { bytesRead } = await file.read(buffer, 0, headBytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

const exifFacts = (exif: Record<string, unknown> | null): Record<string, Json> =>
  Object.fromEntries(
    shown.flatMap((key): [string, Json][] => {
      const value = exif?.[key]
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? [] : [[key, value.toISOString()]]
      if (typeof value === 'number' && Number.isFinite(value)) return [[key, value]]
      return typeof value === 'string' ? [[key, value.slice(0, 200).toWellFormed()]] : []
    }),
  )
