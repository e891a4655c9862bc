import { createCipheriv } from 'node:crypto'

/** Bytes that nothing compresses and that are the same in each run. */
export const seededBytes = (length: number, seed = 1): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(length))
