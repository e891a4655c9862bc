import { crc32, deflateSync } from 'node:zlib'
import { getResolvedPDFJS } from 'unpdf'
import type { PDFPageProxy } from 'unpdf/pdfjs'

/** Longer sides are scaled down to this, about what vision models see of an image; so most pages have less than 5 MB. */
const maxSide = 1600
/** Of the largest image of a page: what is smaller is a logo, not a part of the page. */
const minShare = 0.25
const maxImages = 4

/** An image as pdf.js decodes it: one bit a pixel (also of a stencil: 0 is ink), or bytes of red, green, blue and maybe alpha. */
type Bitmap = { width: number; height: number; data: Uint8Array | Uint8ClampedArray }

/** The images that make a page, as PNG, in the order in which they are painted; `count` with those that cannot be decoded. */
export const readPageImages = async (page: PDFPageProxy): Promise<{ count: number; pngs: Buffer[] }> => {
  const { OPS } = await getResolvedPDFJS()
  const painting: readonly number[] = [
    OPS.paintImageXObject,
    OPS.paintInlineImageXObject,
    OPS.paintImageMaskXObject,
  ]
  const { fnArray, argsArray } = await page.getOperatorList()
  const bitmaps = new Map<unknown, Bitmap | null>()
  for (const [at, operation] of fnArray.entries()) {
    if (!painting.includes(operation)) continue
    const image = argsArray[at]?.[0] as string | { data: unknown }
    const key = typeof image === 'string' ? image : image.data
    if (!bitmaps.has(key))
      bitmaps.set(key, typeof key === 'string' ? await loadBitmap(page, key) : (image as Bitmap))
  }
  const decoded = [...bitmaps.values()].filter((bitmap) => bitmap !== null)
  const largest = decoded.reduce((most, { width, height }) => Math.max(most, width * height), 0)
  const parts = decoded.filter(({ width, height }) => width * height >= largest * minShare)
  return { count: bitmaps.size, pngs: parts.slice(0, maxImages).flatMap((bitmap) => toPng(bitmap) ?? []) }
}

const loadBitmap = async (page: PDFPageProxy, key: string): Promise<Bitmap | null> => {
  const objects = key.startsWith('g_') ? page.commonObjs : page.objs
  const bitmap = await new Promise<Bitmap | null>((resolve) => objects.get(key, resolve))
  return bitmap?.data ? bitmap : null
}

/** Averages squares of pixels to the size that is kept. Null: pixels of another layout. */
const toPng = ({ width, height, data }: Bitmap): Buffer | null => {
  const rowBytes = data.length / height
  const channels = Math.floor(rowBytes / width)
  const isBits = rowBytes === Math.ceil(width / 8)
  if (!isBits && channels !== 1 && channels !== 3 && channels !== 4) return null
  const readPixel = (x: number, y: number, channel: number): number => {
    if (isBits) return ((data[y * rowBytes + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1 ? 255 : 0
    return data[y * rowBytes + x * channels + (channels === 1 ? 0 : channel)] ?? 0
  }
  const step = Math.ceil(Math.max(width, height) / maxSide)
  const size = { width: Math.floor(width / step) || 1, height: Math.floor(height / step) || 1 }
  const rows = Buffer.alloc(size.height * (1 + size.width * 3))
  let at = 0
  for (let y = 0; y < size.height; y += 1) {
    // the byte before each row says that it is not filtered
    at += 1
    for (let x = 0; x < size.width; x += 1)
      for (let channel = 0; channel < 3; channel += 1) {
        let sum = 0
        for (let dy = 0; dy < step; dy += 1)
          for (let dx = 0; dx < step; dx += 1) sum += readPixel(x * step + dx, y * step + dy, channel)
        rows[at] = sum / (step * step)
        at += 1
      }
  }
  return encodePng(size, rows)
}

/** A PNG of red, green and blue, 8 bits each (W3C PNG, sections 5 and 11). */
const encodePng = ({ width, height }: { width: number; height: number }, rows: Buffer): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
    const around = Buffer.alloc(8)
    around.writeUInt32BE(data.length, 0)
    around.writeUInt32BE(crc32(body), 4)
    return Buffer.concat([around.subarray(0, 4), body, around.subarray(4)])
  }
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}
