import { imagesOf } from '../choose/sight.ts'
import type { ModelAsk } from '../ports.ts'
import { TemplateFailure } from './render.ts'

/** An image as it stands in a body: the base64 of a data: address, any other address as JSON has it. */
const wordsOf = (address: string): string => {
  const comma = /^data:/i.test(address) ? address.indexOf(',') : -1
  return comma === -1 ? JSON.stringify(address).slice(1, -1) : address.slice(comma + 1)
}

/** Throws TemplateFailure where an image is not in the body: no model is asked about one that it does not get. */
export const checkImagesSent = (ask: ModelAsk, body: string | null): void => {
  const left = imagesOf(ask).find(({ url }) => !body?.includes(wordsOf(url)))
  if (left === undefined) return
  const what = /^data:/i.test(left.url) ? 'images' : 'images by their address, only data: ones'
  throw new TemplateFailure('/body', `takes no ${what}`)
}
