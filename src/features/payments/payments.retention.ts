import { hasRow } from '../../infra/database/database.ts'
import { defineRetention } from '../definitions.ts'

/** Their passkeys and open mandates. */
const userStatement = `
  WITH keys AS (DELETE FROM passkeys WHERE tenant = $1 AND user_id = $2 RETURNING 1),
    mandates AS (DELETE FROM open_mandates WHERE tenant = $1 AND user_id = $2 RETURNING 1)
  SELECT FROM (SELECT * FROM keys UNION ALL SELECT * FROM mandates) AS removed LIMIT 1`

export default defineRetention({
  async deleteOfUser(sql, ...user) {
    // first: one that is being used has its passkey stored once it is gone. None is what a caller would look for
    await sql.query('DELETE FROM consent_links WHERE tenant = $1 AND user_id = $2', user)
    return hasRow(sql, userStatement, user)
  },
})
