import { z } from 'zod'
import type { AnyNode, AnyTool } from '../graph/definitions.ts'
import { toolKinds } from '../graph/graph-parts.ts'
import { describeIssues, isFunction } from '../graph/requests.ts'
import { toErrorMessage } from '../state/errors.ts'
import { toModelSchema } from '../state/model-schema.ts'
import { patchSchema } from '../state/patch.ts'
import { provenanceOrigins } from '../state/provenance.ts'
import { runtimeStateSchema } from '../state/runtime-state.ts'

const names = z.array(z.string())
// by what zod 4 itself goes by: the schema may come from another copy of it
const isSchema = (value: unknown): boolean => typeof value === 'object' && value !== null && '_zod' in value
const target = z.union(
  [z.string(), z.strictObject({ tools: z.enum(toolKinds) }), z.strictObject({ one: names })],
  'must be the name of a node, { tools: kind } or { one: [names of nodes] }',
)
const effects = z.union(
  [z.enum(['none', 'read', 'write']), isFunction],
  'must be none, read, write or a function of the arguments',
)
/** What the language of the dialogue has for itself, so that no server and no call tool can have such a name. */
const tags = /^(?:think|answer|result|execute_tools|parallel|sequential)$/
const isServer = (name: string): boolean => /^[a-z][a-z0-9_]{0,63}$/.test(name) && !tags.test(name)
/** The planner has calls of these names itself. */
const isName = (name: string): boolean => /^(?!(?:update_todos|finish)$)[a-z][a-z0-9_-]{0,63}$/.test(name)

/** Why no model gets the input of a call tool, which is sent as a JSON Schema; null: it does. */
const findInputError = (input: z.ZodType, raw: { field: string } | undefined): string | null => {
  try {
    const { type, properties = {} } = toModelSchema(input, 'input')
    if (type !== 'object') return 'is not one object; write: input: z.strictObject({ … })'
    return raw && !(raw.field in (properties as object))
      ? `has no field "${raw.field}" for the raw body`
      : null
  } catch (error) {
    return `${toErrorMessage(error)}: take a text or a number there`
  }
}

const part = z.strictObject({
  kind: z.string(),
  name: z.string().refine(isName, 'is reserved, or not of a-z, 0-9, _ and - after a letter; choose another'),
  description: z.string().max(20_000),
  reads: z.array(runtimeStateSchema.keyof()),
  writes: z.array(patchSchema.keyof()),
  needs: names.optional(),
  run: isFunction,
})
const optional = z.object({
  steps: names,
  server: z.string().refine(isServer, 'is a tag of the dialogue, or not of a-z, 0-9 and _ after a letter'),
  exclusive: z.string().min(1, 'must name the resource'),
  raw: z.strictObject({ field: z.string(), language: z.literal('python').optional() }),
  effects,
  pure: z.boolean(),
  provenance: z.enum(provenanceOrigins),
  isAvailable: isFunction,
  skip: isFunction,
  hasWork: isFunction,
})
const tool = part.extend({
  ...optional.partial().shape,
  kinds: z.array(z.enum(toolKinds)).min(1, 'must name at least one kind'),
  input: z.custom<z.ZodType>(
    isSchema,
    'is not a schema of zod 4; install zod 4, and use z.strictObject({ … })',
  ),
})
const shapes = {
  node: part.extend({ next: z.array(target) }),
  tool: tool.superRefine(({ name, kinds, input, effects: does = 'none', pure, ...given }, { addIssue }) => {
    const add = (field: string, message: string) => addIssue({ code: 'custom', path: [field], message })
    if (pure && does !== 'none') add('pure', 'remove it, or its other effects')
    const isCall = kinds.includes('call')
    for (const field of ['server', 'exclusive', 'raw'] as const)
      if (given[field] !== undefined && !isCall) add(field, 'give it the kind call, or remove it')
    if (isCall && tags.test(name)) add('name', 'is a tag of the dialogue; choose another')
    const problem = isCall ? findInputError(input, given.raw) : null
    if (problem !== null) add('input', problem)
  }),
}

/** What is wrong with the fields of a definition, which may be JavaScript that no compiler has checked; '': nothing. */
export const findShapeError = (defined: AnyNode | AnyTool): string =>
  describeIssues(shapes[defined.kind], defined)
