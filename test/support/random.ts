import { createCipheriv } from 'node:crypto'

/** What every draw of the tests comes from: fixed, unless `MASON_TEST_SEED` is another number. */
export const testSeed = Number(process.env.MASON_TEST_SEED ?? 15)

/** Bytes that nothing compresses and that are the same in each run. */
export const seededBytes = (length: number, seed = testSeed): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(length))
