import { z } from 'zod'

/** The name of a file, with the folders it is in: `core/main.py`. Names are no paths: bytes are never stored under them. */
export const fileNameSchema = z
  .string()
  .min(1)
  .max(255)
  .refine(
    (name) =>
      !/[\\\p{Cc}]/u.test(name) &&
      name.isWellFormed() &&
      (name === '' || name.split('/').every((part) => !['', '.', '..'].includes(part))),
    'must be a file name, with folders as in core/main.py, without control characters, backslashes and empty, . or .. parts',
  )
  // the state holds files by their names, and no object takes this one
  .refine((name) => name !== '__proto__', 'a file cannot have this name')
/** The media type of a file, as its sender says. */
export const fileTypeSchema = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not have control characters or half a surrogate pair')
/** The id of an uploaded file. */
export const fileIdSchema = z.string().regex(/^file_[0-9a-f]{32}$/, 'must be the id of an uploaded file')

/** The largest file that is stored. */
export const maxUploadBytes = 512 * 1024 * 1024

/** An uploaded file as it is returned. */
export const uploadedFileSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  /** Null until all bytes are there. */
  sha256: z.string().nullable(),
  /** Received so far. */
  bytes: z.int().nonnegative(),
  /** How many it will have; null while the one request that sends it goes on. */
  length: z.int().nonnegative().nullable(),
  created_at: z.string(),
})

/** See `uploadedFileSchema`. */
export type UploadedFile = z.infer<typeof uploadedFileSchema>
