import { z } from 'zod'
import { labelSchema, toChangeSchema } from '../state/resource-schema.ts'
import { idSchema } from '../state/run-request.ts'

/** Bodies and views of the admin API for operators and the log of changes: docs/contract.md, section 7. */

const operatorInputSchema = z.strictObject({ name: labelSchema.describe('The name of the person') })
const operatorViewSchema = z.strictObject({ id: z.string(), name: z.string(), created_at: z.string() })
/** The bodies and the view of operators. */
export const operatorSchemas = {
  input: operatorInputSchema.meta({ examples: [{ name: 'Ann of support' }] }),
  change: toChangeSchema(operatorInputSchema).meta({ examples: [{ name: 'Ann' }] }),
  view: operatorViewSchema,
}
/** Returned once, when the token is created. */
export const newOperatorSchema = operatorViewSchema.extend({ token: z.string() })
export type NewOperator = z.infer<typeof newOperatorSchema>

/** A change by an admin. */
export const auditViewSchema = z.strictObject({
  id: z.string(),
  at: z.string(),
  token_id: z
    .string()
    .nullable()
    .describe('The token of an operator; null: the admin token of the settings, or auth is off'),
  token_label: z.string(),
  address: z.string().describe('Where the request came from'),
  request_id: z.string(),
  operation: z.string().describe('The operation id of the route'),
  resource: z.string().describe('The path of the request'),
  resource_id: z.string().nullable().describe('The id of what was changed or made'),
  business_id: z.string().nullable(),
  fields: z.array(z.string()).describe('The names of the fields of the request; values are never stored'),
})
export type AuditView = z.infer<typeof auditViewSchema>

/** Which changes a list has. */
export const auditFilterSchema = z.strictObject({
  token_id: idSchema.describe('By this token only').optional(),
  operation: z.string().max(200).describe('Of this operation only').optional(),
  resource_id: z.string().max(200).describe('Of this resource only').optional(),
  business_id: idSchema.describe('Of this business only').optional(),
  request_id: z.string().max(200).describe('Of this request only').optional(),
})
export type AuditFilter = z.infer<typeof auditFilterSchema>
