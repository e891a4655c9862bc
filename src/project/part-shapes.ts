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
/** The planner's control calls. */
const reserved = /^(?:update_todos|finish)$/
/** What the language of the dialogue has for itself, so that no server and no call tool can have such a name. */
const tags = /^(?:think|answer|result|execute_tools|parallel|sequential)$/
const isServer = (name: string): boolean => /^[a-z][a-z0-9_]{0,63}$/.test(name) && !tags.test(name)

/** Why a model cannot be told of the arguments of a call tool, or null: it gets them as a JSON Schema. */
const findInputError = (input: unknown, raw: { field: string } | undefined): string | null => {
  try {
    const { type, properties = {} } = toModelSchema(input as z.ZodType, 'input')
    if (type !== 'object') return 'is not one object; write: input: z.strictObject({ … })'
    if (raw === undefined || raw.field in (properties as object)) return null
    return `has no field "${raw.field}" for the raw body`
  } catch (error) {
    return `${toErrorMessage(error)}: no model can be told of it; use a text or a number there`
  }
}

const part = z.strictObject({
  kind: z.string(),
  name: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,63}$/, 'must be of a-z, 0-9, _ and -, and start with a letter')
    .refine((name) => !reserved.test(name), 'is reserved; choose another'),
  description: z.string(),
  reads: z.array(runtimeStateSchema.keyof()),
  writes: z.array(patchSchema.keyof()),
  needs: names.optional(),
  run: isFunction,
})
const shapes = {
  node: part.extend({ next: z.array(target) }),
  tool: part
    .extend({
      kinds: z.array(z.enum(toolKinds)).min(1, 'must name at least one kind'),
      input: z.custom(
        isSchema,
        'is not a schema of zod 4; install zod 4 and write: input: z.strictObject({ … })',
      ),
      steps: names.optional(),
      server: z
        .string()
        .refine(isServer, 'must be of a-z, 0-9 and _, start with a letter, and be no tag of the dialogue')
        .optional(),
      exclusive: z.string().min(1, 'must name the resource').optional(),
      raw: z.strictObject({ field: z.string(), language: z.literal('python').optional() }).optional(),
      effects: effects.optional(),
      pure: z.boolean().optional(),
      provenance: z.enum(provenanceOrigins).optional(),
      isAvailable: isFunction.optional(),
      skip: isFunction.optional(),
      hasWork: isFunction.optional(),
    })
    .superRefine(({ name, kinds, input, effects: does = 'none', pure, ...given }, { addIssue }) => {
      const add = (field: string, problem: string) =>
        addIssue({ code: 'custom', path: [field], message: problem })
      if (pure && does !== 'none') add('pure', 'remove it, or its other effects')
      if (!kinds.includes('call')) {
        for (const field of ['server', 'exclusive', 'raw'] as const)
          if (given[field] !== undefined) add(field, 'give it the kind call, or remove it')
        return
      }
      if (tags.test(name)) add('name', 'is a tag of the dialogue; choose another')
      const problem = findInputError(input, given.raw)
      if (problem !== null) add('input', problem)
    }),
}

/** What is wrong with the fields of a definition, which may be JavaScript that no compiler has checked; '': nothing. */
export const findShapeError = (defined: AnyNode | AnyTool): string =>
  describeIssues(shapes[defined.kind], defined)
