import { randomBytes } from 'node:crypto'
import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { Json } from '../../../state/runtime-state.ts'

type FilePart = { base64: string; mime_type?: Json; name?: Json }

const isFile = (value: Json): value is FilePart => isJsonObject(value) && typeof value.base64 === 'string'

/** As browsers write names: https://html.spec.whatwg.org/#multipart-form-data */
const quoteField = (name: string): string =>
  `"${name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22')}"`

/** A value from data must not begin a new header. */
const toHeaderWord = (value: Json | undefined): string =>
  typeof value === 'string' && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(value)
    ? value
    : 'application/octet-stream'

/** A form body (RFC 7578): a list repeats its field, `{base64, mime_type, name}` is a file, other values are text. */
export const encodeMultipart = (
  fields: Readonly<Record<string, Json>>,
): { body: Uint8Array; contentType: string } => {
  const boundary = `mason-${randomBytes(18).toString('hex')}`
  const chunks: Uint8Array[] = []
  for (const [name, value] of Object.entries(fields))
    for (const one of Array.isArray(value) ? value : [value]) {
      const head = `--${boundary}\r\nContent-Disposition: form-data; name=${quoteField(name)}`
      if (isFile(one)) {
        const filename = quoteField(typeof one.name === 'string' ? one.name : 'file')
        chunks.push(
          Buffer.from(
            `${head}; filename=${filename}\r\nContent-Type: ${toHeaderWord(one.mime_type)}\r\n\r\n`,
          ),
          Buffer.from(one.base64, 'base64'),
          Buffer.from('\r\n'),
        )
      } else {
        const text = typeof one === 'string' ? one : JSON.stringify(one)
        chunks.push(Buffer.from(`${head}\r\n\r\n${text}\r\n`))
      }
    }
  chunks.push(Buffer.from(`--${boundary}--\r\n`))
  return { body: Buffer.concat(chunks), contentType: `multipart/form-data; boundary=${boundary}` }
}
