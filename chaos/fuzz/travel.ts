import fc from 'fast-check'

export type Header = readonly [name: string, value: string]

/** How the bytes travel: mostly whole and with their length; sometimes slow, cut off, in chunks, or miscounted. */
export type Travel = {
  pieces: number
  until: number
  length: 'right' | 'chunked' | 'bad chunks' | 'short' | 'none' | 'both' | 'negative'
}
export const travel: fc.Arbitrary<Travel> = fc.oneof(
  { weight: 24, arbitrary: fc.constant<Travel>({ pieces: 1, until: 1, length: 'right' }) },
  { weight: 2, arbitrary: fc.constant<Travel>({ pieces: 40, until: 1, length: 'right' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(0.3, 0.9).map((until): Travel => ({ pieces: 3, until, length: 'right' })),
  },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('chunked', 'bad chunks', 'short', 'none', 'both', 'negative')
      .map((length): Travel => ({ pieces: 1, until: 1, length })),
  },
)

export const framed = (body: Buffer, length: Travel['length']): { headers: Header[]; body: Buffer } => {
  const chunked = Buffer.concat([
    Buffer.from(`${body.length.toString(16)}\r\n`),
    body,
    Buffer.from('\r\n0\r\n\r\n'),
  ])
  const count: Header = ['content-length', String(body.length)]
  const coding: Header = ['transfer-encoding', 'chunked']
  switch (length) {
    case 'right':
      return { headers: [count], body }
    case 'chunked':
      return { headers: [coding], body: body.length > 0 ? chunked : Buffer.from('0\r\n\r\n') }
    case 'bad chunks':
      return { headers: [coding], body: Buffer.concat([Buffer.from('zz\r\n'), body]) }
    case 'short':
      return { headers: [['content-length', String(Math.floor(body.length / 2))]], body }
    case 'none':
      return { headers: [], body }
    case 'both':
      return { headers: [count, coding], body: chunked }
    case 'negative':
      return { headers: [['content-length', '-5']], body }
    default:
      throw length satisfies never
  }
}
