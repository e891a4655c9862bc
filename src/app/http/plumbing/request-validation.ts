import type { FastifyRequest } from 'fastify'
import { type ZodType, z } from 'zod'
import { MasonError } from '../../../state/errors.ts'
import {
  createFieldsError,
  type FieldError,
  mapIssues,
  maxFieldErrors,
} from '../../../state/resource-schema.ts'
import { type Step, stepAtOnce } from './large-bodies.ts'

type Issue = z.core.$ZodIssue

/** So many items of a list are validated at once, and for so long in one step. */
const itemsAtOnce = 20
const stepMs = 20

/**
 * Validates path, query, headers and body of a request by its route's schemas and sets the parsed values on the request.
 * Throws one `invalid_request` with the errors of all of them; where a list of a large body has errors, with those of its
 * first bad items.
 */
export const validateRequest = async (request: FastifyRequest, step: Step): Promise<void> => {
  const schemas = (request.routeOptions.schema ?? {}) as Partial<Record<string, ZodType>>
  if (step !== stepAtOnce) await validateLists(schemas.body, request.body, step)
  await step(() => validateParts(request, schemas))
}

/** Zod would find all the errors of a list, however many, in one turn of the event loop. */
const validateLists = async (schema: ZodType | undefined, body: unknown, step: Step): Promise<void> => {
  if (!(schema instanceof z.ZodObject)) return
  for (const [name, list] of Object.entries(body ?? {})) {
    const field = schema.shape[name]
    if (!(field instanceof z.ZodArray) || !Array.isArray(list)) continue
    const items = z.array(field.element)
    const validateNext = (at: number): number => {
      const some = list.slice(at, at + itemsAtOnce)
      const { error } = items.safeParse(some, { reportInput: true })
      const issues = error?.issues.map(
        ({ path: [index, ...path], ...issue }) =>
          ({ ...issue, path: [name, at + Number(index), ...path] }) as Issue,
      )
      if (issues) throw invalidRequest(toErrors(issues, ''))
      return at + some.length
    }
    for (let at = 0; at < list.length; )
      at = await step(() => {
        const since = performance.now()
        let next = validateNext(at)
        while (next < list.length && performance.now() - since < stepMs) next = validateNext(next)
        return next
      })
  }
}

const validateParts = (request: FastifyRequest, schemas: Partial<Record<string, ZodType>>): void => {
  let errors: FieldError[] = []
  const validate = (part: 'params' | 'querystring' | 'headers' | 'body', value: unknown): unknown => {
    const schema = schemas[part]
    if (!schema) return value
    const parsed = schema.safeParse(value, { reportInput: true })
    if (parsed.success) return parsed.data
    errors = errors.concat(toErrors(parsed.error.issues, part === 'headers' ? 'header ' : ''))
    return value
  }
  request.params = validate('params', request.params)
  const query: Record<string, unknown> = { ...(request.query as object) }
  // where other names are allowed, zod would drop it silently
  if (Object.hasOwn(query, '__proto__')) errors.push({ pointer: '/__proto__', detail: 'unknown field' })
  request.query = validate(
    'querystring',
    Object.fromEntries(Object.entries(query).filter(([name]) => name !== '__proto__')),
  )
  validate('headers', request.headers)
  request.body = validate('body', request.body)
  if (errors.length > 0) throw invalidRequest(errors)
}

/** For the body of a route that takes none: what it names would be dropped silently. */
export const refuseFields = (body: unknown): object => {
  const { data, error } = z.strictObject({}).safeParse(body, { reportInput: true })
  if (error) throw invalidRequest(toErrors(error.issues, ''))
  return data
}

/** An `invalid_request` with at least one error; of very many only the first thousand. */
const invalidRequest = (errors: FieldError[]): MasonError => {
  if (errors.length === 1) return createFieldsError(...errors)
  const count = errors.length < maxFieldErrors ? errors.length : `at least ${maxFieldErrors}`
  return new MasonError('invalid_request', `the request has ${count} errors`, {
    detail: { errors: errors.slice(0, maxFieldErrors) },
  })
}

const toErrors = (issues: readonly Issue[], prefix: string): FieldError[] =>
  mapIssues(issues, (issue) => {
    const { path, input, message } = issue
    if (input === undefined) return 'is required'
    // such a number is read as the text of its digits
    const isText = issue.code === 'invalid_type' && issue.expected === 'number' && typeof input === 'string'
    const isLong = isText && /^-?\d(?:[\d.]{15}|[\d.]{0,14}e\+?\d{3})/i.test(input)
    if (isLong && Math.abs(Number(input)) > Number.MAX_SAFE_INTEGER)
      return 'has more digits than a number holds; send a smaller one'
    return prefix === '' ? message : `${prefix}${path[0]?.toString()}: ${message}`
  })
