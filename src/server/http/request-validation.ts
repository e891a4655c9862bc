import type { FastifyRequest } from 'fastify'
import type { ZodType, z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { type FieldError, maxFieldErrors, resolveUnions, toPointer } from '../../state/resource-schema.ts'

type Issue = z.core.$ZodIssue

/**
 * Validates path, query, headers and body of a request by its route's schemas and sets the parsed values on the request.
 * Throws one `invalid_request` with the errors of all of them.
 */
export const validateRequest = (request: FastifyRequest): void => {
  const schemas = (request.routeOptions.schema ?? {}) as Partial<Record<string, ZodType>>
  const errors: FieldError[] = []
  const validate = (part: 'params' | 'querystring' | 'headers' | 'body', value: unknown): unknown => {
    const schema = schemas[part]
    if (!schema) return value
    const parsed = schema.safeParse(value, { reportInput: true })
    if (parsed.success) return parsed.data
    // one issue may name hundreds of thousands of unknown fields
    for (const issue of resolveUnions(parsed.error.issues))
      for (const error of toFieldErrors(issue, part === 'headers' ? 'header ' : '')) errors.push(error)
    return value
  }
  request.params = validate('params', request.params)
  request.query = validate('querystring', { ...(request.query as object) })
  validate('headers', request.headers)
  request.body = validate('body', request.body)
  if (errors.length > 0) throw invalidRequest(errors)
}

/** An `invalid_request` with at least one error; of very many only the first thousand. */
export const invalidRequest = (errors: FieldError[]): MasonError =>
  new MasonError(
    'invalid_request',
    errors.length === 1
      ? `${errors[0]?.pointer}: ${errors[0]?.detail}`
      : `the request has ${errors.length} errors`,
    { detail: { errors: errors.slice(0, maxFieldErrors) } },
  )

const toFieldErrors = (issue: Issue, prefix: string): FieldError[] => {
  const pointer = toPointer(issue.path)
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ pointer: pointer + toPointer([key]), detail: 'unknown field' }))
  if (issue.input === undefined) return [{ pointer, detail: 'is required' }]
  return [
    {
      pointer,
      detail: prefix === '' ? issue.message : `${prefix}${issue.path[0]?.toString()}: ${issue.message}`,
    },
  ]
}
