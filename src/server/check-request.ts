import type { FastifyRequest } from 'fastify'
import type { ZodType, z } from 'zod'
import { MasonError } from '../state/errors.ts'
import type { Fault } from './problems.ts'

type Issue = z.core.$ZodIssue

const maxFaults = 1000

/**
 * Checks path, query, headers and body of a request by its route's schemas and puts the parsed values in place.
 * Throws one `invalid_request` with every fault of all of them.
 */
export const checkRequest = (request: FastifyRequest): void => {
  const schema = (request.routeOptions.schema ?? {}) as Partial<Record<string, ZodType>>
  const faults: Fault[] = []
  const checked = (part: 'params' | 'querystring' | 'headers' | 'body', value: unknown): unknown => {
    const wanted = schema[part]
    if (!wanted) return value
    const parsed = wanted.safeParse(value, { reportInput: true })
    if (parsed.success) return parsed.data
    for (const issue of parsed.error.issues)
      faults.push(...faultsOf(issue, part === 'headers' ? 'header ' : ''))
    return value
  }
  request.params = checked('params', request.params)
  request.query = checked('querystring', { ...(request.query as object) })
  checked('headers', request.headers)
  request.body = checked('body', request.body)
  if (faults.length > 0) throw invalidRequest(faults)
}

export const invalidRequest = (faults: Fault[]): MasonError =>
  new MasonError(
    'invalid_request',
    faults.length === 1
      ? `${faults[0]?.pointer}: ${faults[0]?.detail}`
      : `the request has ${faults.length} faults`,
    { detail: { errors: faults.slice(0, maxFaults) } },
  )

const faultsOf = (issue: Issue, prefix: string): Fault[] => {
  const pointer = pointerOf(issue.path)
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ pointer: pointer + pointerOf([key]), detail: 'unknown field' }))
  if (issue.input === undefined) return [{ pointer, detail: 'is required' }]
  return [
    {
      pointer,
      detail: prefix === '' ? issue.message : `${prefix}${issue.path[0]?.toString()}: ${issue.message}`,
    },
  ]
}

/** RFC 6901. Names a caller made up are cut, so that a fault stays short. */
const pointerOf = (path: readonly PropertyKey[]): string =>
  path.map((step) => `/${String(step).slice(0, 200).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
