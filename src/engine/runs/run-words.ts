import { hash } from 'node:crypto'
import type { Database } from '../../infra/database/database.ts'
import { readableJson } from '../../infra/database/pagination.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import { extractWords } from '../../state/text/words.ts'

/** Different words of a prompt and of an answer that are searched, each. */
const maxWords = 200
/** Characters of each that are read: requests and results may be tens of MB. */
const maxChars = 20_000
/** Runs that one transaction reads. */
const batchSize = 20
/** Those of one pass: what an update of Mason leaves to read does not keep others from the database. */
const maxBatches = 100

/** The words of texts as 64-bit integers: the beginning of the hash of each, with its business. */
export const hashWords = (businessId: string, texts: readonly string[]): string[] => [
  ...new Set(
    texts
      .flatMap((text) => [...new Set(extractWords(text))].slice(0, maxWords))
      .map((word) => hash('sha256', `${businessId}\n${word}`, 'buffer').readBigInt64BE(0).toString()),
  ),
]

/** Words that a search has at most. */
const maxSearchWords = 20

/** The words of a search. Throws `invalid_request` for a text without any. */
export const hashSearch = (businessId: string, text: string): string[] => {
  const words = hashWords(businessId, [text]).slice(0, maxSearchWords)
  if (words.length > 0) return words
  throw createFieldsError({ pointer: '/q', detail: 'has no word that is searched for; give a longer one' })
}

type UnreadRow = { tenant: string; run_id: string; prompt: string | null; answer: string | null }

/**
 * Several processes may read at once, each other runs. The words refer to the run: without a lock on it from the beginning, a
 * deletion that holds the run would wait for its row here, and this for the run.
 */
const unreadStatement = `
  SELECT u.tenant, u.run_id, left(${readableJson('q.request')}->>'prompt', ${maxChars}) AS prompt,
    left(${readableJson('o.result')}->>'answer', ${maxChars}) AS answer
  FROM unread_runs u JOIN runs r USING (tenant, run_id) JOIN run_requests q USING (tenant, run_id)
    LEFT JOIN run_results o USING (tenant, run_id)
  ORDER BY u.created_at LIMIT ${batchSize} FOR UPDATE OF u SKIP LOCKED FOR KEY SHARE OF r SKIP LOCKED`

const readStatement = `
  WITH read AS (SELECT * FROM json_to_recordset($1::json) AS r(tenant text, run_id text, words json)), word AS (
    INSERT INTO run_words (tenant, run_id, word, created_at)
    SELECT u.tenant, u.run_id, w::bigint, u.created_at FROM read r JOIN unread_runs u USING (tenant, run_id),
      json_array_elements_text(r.words) AS w ON CONFLICT DO NOTHING)
  DELETE FROM unread_runs u USING read r WHERE u.tenant = r.tenant AND u.run_id = r.run_id`

/** Reads the words of ended runs, so that lists find them by what was said. */
export const readUnreadWords = async (database: Pick<Database, 'transaction'>): Promise<void> => {
  for (let pass = 0, count = batchSize; count === batchSize && pass < maxBatches; pass++)
    count = await database.transaction(async (sql) => {
      const { rows } = await sql.query<UnreadRow>(unreadStatement)
      if (rows.length === 0) return 0
      const read = rows.map(({ tenant, run_id, prompt, answer }) => ({
        tenant,
        run_id,
        words: hashWords(tenant, [prompt ?? '', answer ?? '']),
      }))
      await sql.query(readStatement, [JSON.stringify(read)])
      return rows.length
    })
}
