import { z } from 'zod'

/** So many characters an id may have: a unique index of the database holds no text of more than 2,704 bytes. */
export const maxIdChars = 500

/** An id as the database keeps it: it stores no U+0000, and of half a surrogate pair U+FFFD, so that two ids would be one. */
export const mandateIdSchema = z
  .string()
  .min(1)
  .max(maxIdChars)
  .refine((id) => id.isWellFormed() && !/[\0\ufffd]/.test(id), {
    message: 'has U+0000, U+FFFD or half a surrogate pair: send an id without it',
    params: { code: 'invalid_id' },
  })
