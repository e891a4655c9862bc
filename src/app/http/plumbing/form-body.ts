import type { FastifyRequest } from 'fastify'
import { HttpError } from '../../../routes/problems.ts'

const maxParts = 100
const maxHeadBytes = 16 * 1024

/** What makes a form too costly to parse, found in one pass over its bytes; null: nothing. */
const findFormExcess = (body: Buffer, boundary: string): string | null => {
  const mark = `--${boundary}`
  let parts = 0
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) {
    // the last mark closes the form
    if (++parts > maxParts + 1) return `the form has more than ${maxParts} parts`
    if (at + maxHeadBytes < body.length && !body.subarray(at, at + maxHeadBytes).includes('\r\n\r\n'))
      return `a part of the form has a head of more than ${maxHeadBytes} bytes`
  }
  return null
}

/**
 * The fields of a form (multipart/form-data) by name: texts, and files as `File`. Of a repeated field the last one counts.
 * The web standard's own parser reads it: decision 51. Throws 400 or 415.
 */
export const parseFormBody = async ({ headers, body }: FastifyRequest): Promise<Record<string, unknown>> => {
  const type = headers['content-type'] ?? ''
  const boundary = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))/i.exec(
    type,
  )
  if (!boundary)
    throw new HttpError('unsupported_media_type', `the content-type is "${type.split(';')[0]}"`, {
      remedy: 'send "content-type: multipart/form-data" with a boundary',
    })
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  const excess = findFormExcess(bytes, boundary[1] ?? boundary[2] ?? '')
  if (excess) throw new HttpError('malformed_request', excess)
  try {
    const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
    return Object.fromEntries(form)
  } catch {
    throw new HttpError('malformed_request', 'the body is not a complete form')
  }
}
