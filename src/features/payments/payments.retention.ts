import { hasRow } from '../../infra/database/database.ts'
import { defineRetention } from '../definitions.ts'

/** Their passkeys and open mandates. Links are none that a caller would look for. */
const userStatement = `
  WITH links AS (DELETE FROM consent_links WHERE tenant = $1 AND user_id = $2),
    keys AS (DELETE FROM passkeys WHERE tenant = $1 AND user_id = $2 RETURNING 1),
    mandates AS (DELETE FROM open_mandates WHERE tenant = $1 AND user_id = $2 RETURNING 1)
  SELECT FROM (SELECT * FROM keys UNION ALL SELECT * FROM mandates) AS removed LIMIT 1`

export default defineRetention({ deleteOfUser: (sql, ...user) => hasRow(sql, userStatement, user) })
