import { z } from 'zod'
import type { PlannedCall } from '../state/calls.ts'
import type { Json } from '../state/runtime-state.ts'
import { tryParseJson } from '../state/text/json-size.ts'
import type { AnyTool } from './definitions.ts'
import { refersToResults } from './references.ts'

type Arguments = PlannedCall['args']

/** The arguments that the body of a call means, or what is wrong with it. */
export type CallBody = { ok: true; args: Arguments } | { ok: false; error: string }

const argumentsSchema = z.record(z.string(), z.json())

/** The arguments in a text that is a JSON object, none in an empty one; null for any other. */
export const parseArguments = (text: string): Arguments | null => {
  return argumentsSchema.safeParse(text.trim() === '' ? {} : tryParseJson(text)).data ?? null
}

/** What is wrong with arguments, and why an integer in them is text. */
export const describeInvalidArguments = (tool: string, text: string, error: z.ZodError): string =>
  `the arguments of ${tool} are invalid: ${z.prettifyError(error)}${
    /(?<![\d.])[1-9]\d{15}/.test(text)
      ? '\nAn integer beyond 9007199254740991 is taken as text: where a number is asked for, send a smaller one'
      : ''
  }`

/**
 * Reads the body of a call in the XML dialogue. It is JSON where the tool has no `raw`, or where it is an object that fits its
 * schema; else it goes into the field of `raw`, as it is. A value that refers to results is checked when the call runs.
 */
export const readCallBody = (tool: Pick<AnyTool, 'name' | 'input' | 'raw'>, body: string): CallBody => {
  const args = parseArguments(body)
  if (!tool.raw) {
    if (args === null)
      return { ok: false, error: `the body of ${tool.name} is not a JSON object; send its arguments as one` }
    return refersToResults(tool, args) ? { ok: true, args } : check(tool, args)
  }
  if (args !== null && check(tool, args).ok) return { ok: true, args }
  return check(tool, { [tool.raw.field]: body })
}

/** Whether arguments fit the schema; a value that refers to results fits for now. */
const check = (tool: Pick<AnyTool, 'name' | 'input' | 'raw'>, args: Arguments): CallBody => {
  const { error } = (tool.input as z.ZodType).safeParse(args)
  const issues = error?.issues.filter(({ path }) => !refersToResults({}, { value: valueAt(args, path) }))
  return !error || issues?.length === 0
    ? { ok: true, args }
    : { ok: false, error: describeInvalidArguments(tool.name, JSON.stringify(args), error) }
}

const valueAt = (args: Arguments, path: readonly PropertyKey[]): Json =>
  path.reduce<Json>((value, key) => {
    const field =
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, Json>)[key] : undefined
    return field ?? null
  }, args)
