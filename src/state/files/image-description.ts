import { z } from 'zod'
import type { OtherFile } from './prepared-files.ts'

/** A vision model's description of an image. The words may be those of the image, so they are never trusted. */
export const imageDescriptionSchema = z.strictObject({
  description: z.string(),
  /** The text on it, word for word; empty where there is none. */
  text: z.string(),
  /** The alias of the model. */
  by: z.string(),
})
/** A description of an image, with the alias of the model that wrote it. */
export type ImageDescription = z.infer<typeof imageDescriptionSchema>

/** The description of an image; null for other files and without one (a note says why). */
export const readImageDescription = ({ facts }: Pick<OtherFile, 'facts'>): ImageDescription | null =>
  imageDescriptionSchema.safeParse(facts.shows).data ?? null

/** Kinds of images that the models of all vendors take, by what their bytes are. */
const mimeTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}

/** The MIME type of a prepared image; null where models take no such images. */
export const readImageMimeType = ({ facts: { type } }: Pick<OtherFile, 'facts'>): string | null =>
  typeof type === 'string' && Object.hasOwn(mimeTypes, type) ? (mimeTypes[type] ?? null) : null
