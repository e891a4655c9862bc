import { imageDescriptionSchema } from '../../state/files/image.ts'
import type { Files, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'

/** Raised with every change of what models are asked about images. */
const openedAs = 'vision:1'

/** Beside what was found in the same bytes, and deleted with it: a model is asked once about an image of a business. */
export const createImageDescriptions = (sql: Sql, { tenant }: { tenant: string }): Files['descriptions'] => ({
  async find(sha256) {
    const row = await one<{ found: unknown }>(
      sql,
      'SELECT found FROM prepared_files WHERE tenant = $1 AND sha256 = $2 AND opened_as = $3',
      [tenant, sha256, openedAs],
    )
    return imageDescriptionSchema.safeParse(row?.found).data ?? null
  },
  async keep(sha256, description) {
    await sql.query(
      `INSERT INTO prepared_files (tenant, sha256, opened_as, found, blobs) VALUES ($1, $2, $3, $4, '{}')
       ON CONFLICT (tenant, sha256, opened_as) DO NOTHING`,
      [tenant, sha256, openedAs, JSON.stringify(description)],
    )
  },
})
