import { z } from 'zod'
import { isStorableId } from '../../../infra/lib/json-text.ts'

/** So many characters an id may have: a unique index of the database holds no text of more than 2,704 bytes. */
export const maxIdChars = 500

/** An id as the database keeps it. */
export const mandateIdSchema = z
  .string()
  .min(1)
  .max(maxIdChars)
  .refine(isStorableId, {
    message: 'has U+0000, U+FFFD or half a surrogate pair: send an id without it',
    params: { code: 'invalid_id' },
  })
