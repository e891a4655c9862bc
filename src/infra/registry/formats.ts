import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { FormatChange, FormatInput, FormatView } from '../../state/registry/response-format.ts'
import type { FormatTestView, InferInput, InferView } from '../../state/registry/trial.ts'
import type { Json } from '../../state/runtime-state.ts'
import { checkFormat } from '../formats/check.ts'
import { inferFormat } from '../formats/infer.ts'
import { testFormat } from '../formats/test.ts'
import type { User } from './faults.ts'
import { categoryFaults } from './lookups.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Definition = Pick<FormatInput, 'request' | 'paths' | 'stream' | 'poll' | 'schema' | 'samples'>
type Row = StoredRow &
  Pick<FormatView, 'name' | 'category' | 'built_in' | 'status' | 'faults'> & { definition: Definition }

/** How to read answers. Those that are built in can be copied, and not changed. */
export const createFormats = (context: StoreContext) =>
  createStore<Row, FormatInput, FormatChange, FormatView>(context, {
    name: 'response format',
    prefix: 'fmt',
    table: 'response_formats',
    idColumn: 'format_id',
    columns: 't.name, t.category, t.definition, t.built_in, t.status, t.faults',
    scopedBy: [],
    viewOf: ({ built_in, status, faults, ...row }) => ({
      ...inputOf(row),
      built_in,
      status,
      faults,
      ...timesOf(row),
    }),
    inputOf,
    merge: (before, change) => ({ ...before, ...change }) as FormatInput,
    faultsOf: async (sql, input, { id, before }) => [
      ...checkFormat(input),
      ...(await categoryFaults(sql, [input.category], () => '/category')),
      ...(before && input.request == null ? await requestFaults(sql, id) : []),
    ],
    valuesOf: ({ name, category, ...definition }) => ({
      name,
      category,
      definition: JSON.stringify(definition),
      // refused otherwise
      status: 'active',
      faults: '[]',
    }),
    usersOf: async (sql, { id }) => {
      const { rows } = await sql.query<User>(
        "SELECT 'model' AS kind, model_id AS id, name FROM models WHERE response_format_id = $1 LIMIT 100",
        [id],
      )
      return rows
    },
    guard({ name, built_in }) {
      if (!built_in) return
      throw new MasonError('forbidden', `response format "${name}" is built in and stays as it is`, {
        remedy: 'copy it: POST /admin/v1/response-formats with its request, paths … under another name',
      })
    },
  })

const inputOf = ({ name, category, definition }: Pick<Row, 'name' | 'category' | 'definition'>) => ({
  name,
  category,
  request: definition.request ?? null,
  paths: definition.paths,
  stream: definition.stream ?? null,
  poll: definition.poll ?? null,
  schema: definition.schema ?? null,
  samples: definition.samples,
})

/** Models at endpoints that speak `http` are asked by the template. */
const requestFaults = async (sql: Sql, id: string): Promise<Fault[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT m.name FROM models m JOIN endpoints e USING (endpoint_id) WHERE m.response_format_id = $1 AND e.protocol = 'http'
     ORDER BY m.name LIMIT 1`,
    [id],
  )
  return rows.map(({ name }) => ({ pointer: '/request', detail: `is needed by model "${name}"` }))
}

/** What a stored format reads in an answer. */
export const tryFormat = (format: FormatView, raw: Json): FormatTestView => {
  const [fault] = format.faults
  if (format.status === 'inactive' && fault)
    return {
      ok: false,
      parsed: null,
      place: fault.pointer,
      detail: `the format is inactive: ${fault.detail}`,
    }
  const tested = testFormat(format, raw)
  return tested.ok
    ? { ok: true, parsed: tested.parsed as unknown as Json, place: null, detail: null }
    : { ok: false, parsed: null, place: tested.place, detail: tested.detail }
}

/** A format for an answer, to be looked over and sent as a new one. */
export const proposeFormat = ({ raw, category }: InferInput): InferView =>
  // what is read is JSON throughout
  inferFormat(raw, category) as InferView
