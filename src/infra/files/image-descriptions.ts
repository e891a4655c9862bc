import { imageDescriptionSchema } from '../../state/files/image.ts'
import type { Files, Sql } from '../../state/ports.ts'
import { holdStored, keepBlob } from '../sessions/blobs.ts'
import { readPrepared, writePrepared } from './prepared-rows.ts'

/** Raised with every change of what models are asked about images. */
const openedAs = 'vision:1'

/**
 * Beside what was found in the same bytes: a model is asked once about an image of a business. The bytes of a mapped image
 * are none of ours, so the description is a blob itself: it goes with the last session that holds it.
 */
export const createImageDescriptions = (
  sql: Sql,
  { tenant, run_id }: { tenant: string; run_id: string },
): Files['descriptions'] => ({
  async find(sha256) {
    const row = await readPrepared<unknown>(sql, tenant, sha256, openedAs)
    // one that names no blob would outlive its sessions: it is asked for anew
    if (!row || (await holdStored(sql, { tenant, run_id }, row.blobs)) === 0) return null
    return imageDescriptionSchema.safeParse(row.found).data ?? null
  },
  async keep(sha256, description) {
    const found = JSON.stringify(description)
    const blob = await keepBlob(sql, { tenant, run_id }, Buffer.from(found))
    await writePrepared(sql, tenant, sha256, openedAs, { found, blobs: [blob] })
  },
})
