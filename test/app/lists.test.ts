// backends: either

import { describe, expect } from 'vitest'
import { z } from 'zod'
import { maxPageBytes, readableJson, writeCursor } from '../../src/infra/database/pagination.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { worker: false })

/** Rows of every list, each above what a page may have beside others; `$1` is the number of a row, as text. */
const rows = 4
const long = 'repeat(md5($1), 12000)'
const vendor =
  "INSERT INTO vendors (vendor_id, name, status) VALUES ('ven_big', 'big', 'active') ON CONFLICT DO NOTHING"
const endpoint =
  "INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, status) VALUES ('end_big', 'ven_big', 'big', 'https://v.example', 'openai', 'active') ON CONFLICT DO NOTHING"
const model = (id: string, name: string, upstream = "'m'") =>
  `INSERT INTO models (model_id, vendor_id, endpoint_id, name, upstream_name, category, dialect, status) VALUES (${id}, 'ven_big', 'end_big', ${name}, ${upstream}, 'text', 'tools', 'active') ON CONFLICT DO NOTHING`
const key =
  'INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, status, limits) VALUES'
const session =
  "INSERT INTO sessions (tenant, session_id, user_id, turns) VALUES ('default', 'ses_' || $1, 'ann', 1)"
const run = `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at) VALUES ('default', 'run_' || $1, 'ses_' || $1, 1, 'completed', now())`
const documents = [
  `INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) VALUES ('default', 'run_' || $1, 'ann',
    json_build_object('prompt', ${long}, 'files', '[]'::json), json_build_object('k', ${long}))`,
  `INSERT INTO run_results (tenant, run_id, result) VALUES ('default', 'run_' || $1,
    json_build_object('answer', ${long}, 'output_structure', '[]'::json, 'error', null, 'goal', ${long},
      'todos', json_build_object('pending', 0, 'processing', 0, 'completed', 2, 'failed', 0)))`,
]

/** By operation id: what fills the list, and the query it needs. `cut`: the fields of an item that are cut. */
const seeds: Record<string, { sql: string[]; query?: string; cut?: string[]; own?: number }> = {
  listRuns: {
    sql: [session, run, ...documents],
    cut: ['answer', 'error', 'metadata', 'open_todos', 'output_errors', 'output_structure', 'prompt'],
  },
  listSessions: { sql: [] },
  listInputRequests: {
    sql: [
      `INSERT INTO input_requests (tenant, request_id, run_id, plan_seq, call_index, question, schema, options, expires_at)
       VALUES ('default', 'inp_' || $1, 'run_' || $1, 1, 0, to_json(${long}), json_build_object('title', ${long}), '[]', now())`,
    ],
    cut: ['question', 'schema'],
  },
  listEffects: {
    sql: [
      `INSERT INTO effects (tenant, effect_id, run_id, class, request, request_hash, status)
       VALUES ('default', 'eff_' || $1, 'run_' || $1, 'manual', '', '', 'unknown')`,
    ],
  },
  listMemories: {
    sql: [
      `INSERT INTO memories (tenant, user_id, memory_id, kind, content, subject, origin, trusted, session_id, run_id, source_action_ids, words, space)
       VALUES ('default', 'ann', 'mem_' || $1, 'fact', ${long}, '', 'user', true, 'ses_' || $1, 'run_' || $1, '{}', '', '')`,
    ],
    query: 'user_id=ann',
  },
  listBusinesses: { sql: ["INSERT INTO businesses (tenant) VALUES ('big' || $1)"] },
  listTokens: {
    sql: [
      `INSERT INTO tokens (tenant, token_id, token_hash, label, roles) VALUES ('default', 'tok_' || $1, $1, ${long}, '{read}')`,
    ],
  },
  listOperators: {
    sql: [`INSERT INTO operators (operator_id, token_hash, name) VALUES ('opr_' || $1, $1, ${long})`],
  },
  listAudit: {
    sql: [
      `INSERT INTO audit_log (audit_id, token_label, address, request_id, operation, resource, fields)
       VALUES ('aud_' || $1, 'l', 'a', 'r', 'o', ${long}, '{}')`,
    ],
  },
  listBudgets: {
    sql: [
      `INSERT INTO budgets (budget_id, tenant, user_id, currency) VALUES ('bud_' || $1, 'default', 'u' || $1, 'USD')`,
    ],
  },
  listUsers: {
    sql: [
      `INSERT INTO users (tenant, user_id, profile) VALUES ('default', 'user' || $1, json_build_object('about', ${long}))`,
    ],
    query: 'business_id=default',
    cut: ['profile'],
  },
  listVendors: {
    sql: [
      `INSERT INTO vendors (vendor_id, name, homepage, status) VALUES ('ven_' || $1, $1, ${long}, 'active')`,
    ],
  },
  listEndpoints: {
    sql: [
      vendor,
      `INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, status, timeouts)
       VALUES ('end_' || $1, 'ven_big', $1, ${long}, 'openai', 'active', json_build_object('idle_ms', repeat('9', 20000)))`,
    ],
    cut: ['timeouts'],
  },
  listKeys: {
    sql: [
      vendor,
      `${key} ('key_' || $1, 'ven_big', $1, 'm', '', '', ${long}, 'active', json_build_object('rpm', repeat('9', 20000)))`,
    ],
    cut: ['limits'],
  },
  listVendorModels: { sql: [vendor, endpoint, model("'mod_' || $1", "'m' || $1", long)] },
  listUnreadAnswers: {
    sql: [
      vendor,
      endpoint,
      model("'mod_big'", "'big'"),
      `INSERT INTO unread_answers (model_id, place, raw) VALUES ('mod_big', $1, ${long})`,
    ],
  },
  listCategories: {
    sql: [
      `INSERT INTO categories (category_id, name, description) VALUES ('cat_' || $1, 'c' || $1, ${long})`,
    ],
  },
  listResponseFormats: {
    sql: [
      `INSERT INTO response_formats (format_id, name, category, status, definition) VALUES ('fmt_' || $1, 'f' || $1, 'text', 'active',
        json_build_object('paths', '{}'::json, 'samples', json_build_array(json_build_object('raw', ${long}, 'expected', '{}'::json))))`,
    ],
    cut: ['request', 'paths', 'stream', 'poll', 'schema', 'samples'],
  },
  listRoutes: {
    sql: [
      `INSERT INTO routes (route_id, role, models, strategy) VALUES ('rou_' || $1, 'role' || $1,
        json_build_array(json_build_object('model', ${long})), 'priority')`,
    ],
    cut: ['models'],
  },
  listGrants: {
    sql: [
      vendor,
      `${key} ('key_big', 'ven_big', 'big', 'm', '', '', '', 'active', '{}') ON CONFLICT DO NOTHING`,
      `INSERT INTO grants (grant_id, key_id, user_id) VALUES ('gra_' || $1, 'key_big', ${long})`,
    ],
  },
  listScenarios: {
    sql: [
      `INSERT INTO scenarios (scenario_id, name, description, prompts, status) VALUES ('sce_' || $1, 's' || $1, ${long},
        json_build_object('planner', ${long}), 'active')`,
    ],
    cut: ['prompts'],
  },
  listRejectedJobs: {
    sql: [
      `INSERT INTO rejected_jobs (tenant, job_id, data, faults) VALUES ('default', 'job_' || $1, '{}',
        json_build_array(json_build_object('pointer', '', 'detail', ${long})))`,
    ],
  },
  listTrustedKeys: {
    sql: [
      `INSERT INTO trusted_keys (key_id, issuer, kid, roles, x, y) VALUES ('trk_' || $1, 'i', $1, '{merchant}', 'x', ${long})`,
    ],
  },
  listPaymentProviders: {
    sql: [
      `INSERT INTO payment_providers (provider_id, name, kind, base_url, allow_private, is_test, window_ms, timeout_ms, sealed_api_key,
         api_key_end, sealed_webhook_secret, webhook_secret_end)
       VALUES ('prv_' || $1, $1, 'card', ${long}, false, true, 1, 1, '', '', '', '')`,
    ],
  },
  listRemoteAgents: {
    sql: [
      `INSERT INTO remote_agents (agent_id, tenant, name, card_url, roles, headers, allow_private, card)
       VALUES ('agt_' || $1, 'default', $1, ${long}, '[]', '{}', false, '{}')`,
    ],
  },
  listSchedules: {
    sql: [
      `INSERT INTO schedules (tenant, schedule_id, name, cron, time_zone, catch_up, status, request) VALUES ('default', 'sch_' || $1, 'n',
        '* * * * *', 'UTC', 'last', 'paused', json_build_object('prompt', ${long}, 'user_id', 'ann'))`,
    ],
    query: 'business_id=default',
    cut: ['request'],
  },
  listWebhooks: {
    sql: [
      `INSERT INTO webhook_deliveries (tenant, webhook_id, type, url, host, last_error)
       VALUES ('default', 'msg_' || $1, 'run.completed', 'https://x/', 'https://x', ${long})`,
    ],
  },
  reportUsage: {
    sql: [
      `INSERT INTO usage_ledger (request_id, tenant, role, vendor_id, endpoint_id, model_id, model_name, upstream_name, status,
         prompt_tokens, completion_tokens, total_tokens, estimated, cost_micro, currency, ms)
       VALUES ($1, 'default', 'planner', 'ven', 'end', 'mod' || $1, ${long}, 'm', 'succeeded', 1, 1, 2, false, 0, 'USD', 1)`,
    ],
    query: 'group_by=model',
  },
}

/** Sent page by page as a file: nothing of it is held. */
const wholes = ['exportMemories']

const schema = z.record(z.string(), z.unknown())
type Schema = z.infer<typeof schema>
type Document = {
  paths: Record<
    string,
    Record<
      string,
      { operationId: string; responses: Record<string, { content?: Record<string, { schema: Schema }> }> }
    >
  >
  components: { schemas: Record<string, Schema> }
}

/** The lists of the API: what answers with `data` and `next_cursor`. */
const listsOf = ({ paths, components }: Document): { id: string; path: string }[] =>
  Object.entries(paths).flatMap(([path, { get }]) => {
    const ref =
      String(get?.responses[200]?.content?.['application/json']?.schema.$ref).split('/').at(-1) ?? ''
    const { data, next_cursor } = (components.schemas[ref]?.properties ?? {}) as Schema
    return get && data && next_cursor ? [{ id: get.operationId, path }] : []
  })

describe('every list of the API', () => {
  test('has no more rows than asked for and no more bytes than a page, and its cursor leads to the rest', async ({
    server,
    elsewhere,
  }) => {
    const get = (path: string) => server.call('GET', path, { token: adminToken })
    const lists = listsOf((await get('/openapi.json')).body).filter(({ id }) => !wholes.includes(id))
    expect(lists.map(({ id }) => id).sort()).toEqual(Object.keys(seeds).sort())
    for (const [name, { sql }] of Object.entries(seeds))
      for (let n = 1; n <= rows; n++)
        for (const statement of sql)
          await elsewhere
            .query(statement.replaceAll('$1', `'${n}'::text`))
            .catch((error: Error) => Promise.reject(new Error(`${name}: ${error.message}`)))
    const ofRuns = writeCursor({ at: '2026-11-27 15:00:00+00', id: 'run_1' })
    for (const { id, path } of lists) {
      const { query = '', cut = [] } = seeds[id] ?? {}
      const address = `${path
        .replace('{vendor_id}', 'ven_big')
        .replace('{business_id}', 'default')
        .replace('{id}', 'mod_big')}?${query}`
      const one = await get(`${address}&limit=1`)
      expect([id, one.status, one.body.data?.length, one.body.next_cursor]).toEqual([
        id,
        200,
        1,
        expect.any(String),
      ])
      const foreign = await get(`${address}&cursor=${ofRuns}`)
      expect([id, foreign.status], 'the cursor of another list').toEqual([id, expect.toBeOneOf([200, 422])])
      const seen = new Set<string>()
      const truncated = new Set<string>()
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = await get(`${address}&limit=200${cursor && `&cursor=${cursor}`}`)
        expect([id, page.status]).toEqual([id, 200])
        expect([id, page.body.data.length]).not.toEqual([id, 0])
        if (page.body.data.length > 1) expect(page.text.length, id).toBeLessThan(maxPageBytes)
        for (const item of page.body.data) {
          seen.add(item.id ?? item.model_id)
          for (const field of item.truncated ?? []) truncated.add(field)
        }
        cursor = page.body.next_cursor
      }
      expect(seen.size, id).toBeGreaterThanOrEqual(rows)
      expect([id, [...truncated].sort()]).toEqual([id, cut.toSorted()])
    }
  })
})

test('a JSON document with NUL and halves of pairs is readable by SQL; whole pairs and escaped backslashes stay', async ({
  database,
}) => {
  const read = async (json: string) =>
    (await database.query(`SELECT ${readableJson('$1::json')}->>'text' AS text`, [json])).rows
  for (const [escaped, text] of [
    ['plain', 'plain'],
    ['\\ud83d\\ude00 \\uD83D\\uDE00 😀', '😀 😀 😀'],
    ['a\\u0000b', 'a\ufffdb'],
    ['\\ud83d', '\ufffd'],
    ['\\ude00\\ud83d', '\ufffd\ufffd'],
    ['\\ud83d\\ud83d\\ude00', '\ufffd😀'],
    ['\\\\u0000 \\\\ud83d\\ude00', '\\u0000 \\ud83d\ufffd'],
    ['\\\\\\u0000\\n\\"\\u00e9', '\\\ufffd\n"é'],
  ])
    expect(await read(`{"text": "${escaped}"}`), escaped).toEqual([{ text }])
})
