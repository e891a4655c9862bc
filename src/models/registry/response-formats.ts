import { cutJson, isLongJson } from '../../infra/database/pagination.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { FormatChange, FormatInput, FormatView } from '../schemas/response-format.ts'
import { findCategoryErrors } from './reference-checks.ts'
import { toFormatFields } from './registry-rows.ts'

type Definition = Pick<FormatInput, (typeof definitionFields)[number]>
type Row = ResourceRow & Pick<FormatView, 'name' | 'category' | 'built_in'> & { definition: Definition }

const definitionFields = ['request', 'paths', 'stream', 'poll', 'schema', 'samples'] as const
const emptyDefinition = `'{"paths":{}}'::json`

/** How to read responses. Built-in formats can be copied, not changed. */
export const createFormats = (
  context: ResourceStoreContext & { findFormatErrors(format: FormatInput): FieldError[] },
) =>
  createResourceStore<Row, FormatInput, FormatChange, FormatView>(context, {
    name: 'response format',
    prefix: 'fmt',
    table: 'response_formats',
    idColumn: 'format_id',
    fields: ['name', 'category'],
    readOnly: ['built_in'],
    columns: 't.definition',
    listed: {
      columns: `${cutJson('t.definition', emptyDefinition)} AS definition`,
      truncated: Object.fromEntries(definitionFields.map((field) => [field, isLongJson('t.definition')])),
    },
    toView: toFormatFields,
    toInput: toFormatFields,
    findErrors: async (sql, input, { id, before }) => [
      ...context.findFormatErrors(input),
      ...(await findCategoryErrors(sql, [input.category], () => '/category')),
      ...(before && input.request == null ? await findRequestErrors(sql, id) : []),
    ],
    toValues: ({ name: _, category: __, ...definition }) => ({
      definition: JSON.stringify(definition),
      status: 'active',
    }),
    dependents: {
      by: 'id',
      query:
        "SELECT 'model' AS kind, model_id AS id, name FROM models WHERE response_format_id = $1 LIMIT 100",
    },
    guard({ name, built_in }) {
      if (!built_in) return
      throw new MasonError('forbidden', `response format "${name}" is built in`, {
        remedy: 'copy it: POST /admin/v1/response-formats with its request, paths … under another name',
      })
    },
  })

/** Models at endpoints with the http protocol need the template. */
const findRequestErrors = async (sql: Sql, id: string): Promise<FieldError[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT m.name FROM models m JOIN endpoints e USING (endpoint_id) WHERE m.response_format_id = $1 AND e.protocol = 'http'
     ORDER BY m.name LIMIT 1`,
    [id],
  )
  return rows.map(({ name }) => ({ pointer: '/request', detail: `is needed by model "${name}"` }))
}
