import { createParser } from 'eventsource-parser'
import type { StreamFormat } from '../../state/registry/response-format.ts'
import { Unreadable } from '../models/unreadable.ts'

/** The data of each event, as text. The last one counts even where nothing ends it. */
export const framesOf = (text: string, format: StreamFormat['format']): string[] => {
  if (format === 'ndjson') return text.split('\n').filter((line) => line.trim() !== '')
  const frames: string[] = []
  const parser = createParser({ onEvent: ({ data }) => void frames.push(data) })
  parser.feed(`${text.replace(/^\uFEFF/, '').trimStart()}\n\n`)
  return frames.filter((frame) => frame.trim() !== '')
}

/** The text of a stream as its events, up to the one that ends it. Throws `Unreadable` for what is no JSON. */
export const eventsOf = (
  text: string,
  { format, done }: Pick<StreamFormat, 'format' | 'done'>,
): unknown[] => {
  const frames = framesOf(text, format)
  const end = done === undefined ? -1 : frames.findIndex((frame) => frame.trim() === done)
  return (end === -1 ? frames : frames.slice(0, end)).map((frame, at) => {
    try {
      return JSON.parse(frame) as unknown
    } catch {
      throw new Unreadable(`/${at}`, `event ${at} of the stream is no JSON: ${frame.slice(0, 100)}`)
    }
  })
}
