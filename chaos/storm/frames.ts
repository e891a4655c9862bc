import { StringDecoder } from 'node:string_decoder'

export type Frame = { event: string; id: string; data: string }

/** Reads events out of pieces of a stream; what is not whole yet waits, comments are left out. */
export const createFrames = (): ((chunk: Buffer) => Frame[]) => {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  return (chunk) => {
    const texts = (rest + decoder.write(chunk)).split('\n\n')
    rest = texts.pop() ?? ''
    return texts.flatMap((text) => (text.startsWith(':') ? [] : [frameOf(text)]))
  }
}

const frameOf = (text: string): Frame => {
  const frame: Frame = { event: 'message', id: '', data: '' }
  for (const line of text.split('\n')) {
    const colon = line.indexOf(': ')
    const field = line.slice(0, colon)
    if (field === 'event' || field === 'id' || field === 'data') frame[field] = line.slice(colon + 2)
  }
  return frame
}
