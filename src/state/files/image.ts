import { z } from 'zod'
import type { OtherFile } from './prepared.ts'

/** What images show, as a model that sees has told it: words that may be those of the image, and so never trusted. */

export const imageDescriptionSchema = z.strictObject({
  description: z.string(),
  /** The text on it, word for word; empty where there is none. */
  text: z.string(),
  /** The alias of the model. */
  by: z.string(),
})
export type ImageDescription = z.infer<typeof imageDescriptionSchema>

/** Null: it is no image, or nobody described it (a note says why). */
export const descriptionOf = ({ facts }: Pick<OtherFile, 'facts'>): ImageDescription | null =>
  imageDescriptionSchema.safeParse(facts.shows).data ?? null

/** Kinds of images that the models of all vendors take, by what their bytes are. */
const mimeTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}

export const mimeTypeOf = ({ facts: { type } }: Pick<OtherFile, 'facts'>): string | null =>
  typeof type === 'string' && Object.hasOwn(mimeTypes, type) ? (mimeTypes[type] ?? null) : null
