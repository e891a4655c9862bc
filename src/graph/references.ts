import { z } from 'zod'
import type { PlannedCall } from '../state/calls.ts'
import { MasonError } from '../state/errors.ts'
import type { Json } from '../state/runtime-state.ts'
import { tryParseJson } from '../state/text/json-size.ts'
import {
  findUnfitReference,
  listPythonReferences,
  listPythonVariables,
  resolvePython,
} from '../state/text/python-references.ts'
import { type FindResult, listReferences, readWholeReference, resolveText } from '../state/text/references.ts'
import type { AnyTool } from './definitions.ts'

type Arguments = PlannedCall['args']
type Path = readonly (string | number)[]
/** A text of arguments: where it is, and whether it is a program in Python. */
type Text = { text: string; path: Path; isPython: boolean }

/** Arguments with other values in place of their texts. */
const mapTexts = ({ raw }: Pick<AnyTool, 'raw'>, args: Arguments, map: (text: Text) => Json): Arguments => {
  const mapValue = (value: Json, path: Path): Json => {
    if (typeof value === 'string') {
      const isPython = raw?.language === 'python' && path.length === 1 && path[0] === raw.field
      return map({ text: value, path, isPython })
    }
    if (Array.isArray(value)) return value.map((item, at) => mapValue(item, [...path, at]))
    return typeof value === 'object' && value !== null ? mapFields(value, path) : value
  }
  const mapFields = (fields: Arguments, path: Path): Arguments =>
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, mapValue(value, [...path, key])]))
  return mapFields(args, [])
}

const listTexts = (tool: Pick<AnyTool, 'raw'>, args: Arguments): Text[] => {
  const texts: Text[] = []
  mapTexts(tool, args, (text) => {
    texts.push(text)
    return null
  })
  return texts
}

const listSteps = ({ text, isPython }: Text): number[] =>
  isPython ? listPythonReferences(text) : listReferences(text)

/** Whether arguments refer to results: their schema is checked when the call runs. */
export const refersToResults = (tool: Pick<AnyTool, 'raw'>, args: Arguments): boolean =>
  listTexts(tool, args).some((text) => listSteps(text).length > 0)

/** A call whose references are invalid, by its index, and the message to the model. */
export type ReferenceError = { index: number; error: string }

/** What is wrong with the references of a block, the first of each call: only later steps of a `<sequential>` can have any. */
export const findReferenceErrors = (
  calls: readonly PlannedCall[],
  findTool: (name: string) => Pick<AnyTool, 'raw'> | undefined,
  isSequential: boolean,
): ReferenceError[] =>
  calls.flatMap(({ index, tool, args }) => {
    for (const text of listTexts(findTool(tool) ?? {}, args)) {
      const error = findReferenceError(text, index, isSequential)
      if (error !== null) return [{ index, error }]
    }
    return []
  })

const findReferenceError = (text: Text, index: number, isSequential: boolean): string | null => {
  const steps = listSteps(text)
  if (steps.length === 0) return null
  if (!isSequential)
    return `{results[${steps[0]}]} stands for a result only inside <sequential>; put the step that it names and this call into one <sequential>`
  const wrong = steps.find((step) => step < 0 || step >= index)
  if (wrong !== undefined) {
    const remedy = index === 0 ? 'write the value itself' : `name a step from 0 to ${index - 1}`
    return `step ${index} refers to {results[${wrong}]}, which is not a step before it; ${remedy}`
  }
  const unfit = text.isPython ? findUnfitReference(text.text) : null
  return (
    unfit &&
    `{results[${unfit.step}]} is in ${unfit.place}, where no result can be written; use the variable results[${unfit.step}] outside of the literal`
  )
}

/** The steps whose results a step of a `<sequential>` uses, in order. */
export const listUsedSteps = (tool: Pick<AnyTool, 'raw'>, { args, index }: PlannedCall): number[] => {
  const used = listTexts(tool, args).flatMap((text) => [
    ...listSteps(text).filter((step) => step >= 0 && step < index),
    ...(text.isPython ? listPythonVariables(text.text, index) : []),
  ])
  return [...new Set(used)].sort((a, b) => a - b)
}

/** Bytes that results take in the arguments of one call. */
const maxResultBytes = 1024 * 1024

/**
 * The arguments that a step of a `<sequential>` runs with: results in place of its references. Where one is a whole value and
 * the schema takes no text there, what its JSON says. A pure function of the planned call and the results. Throws
 * `bad_tool_call` where they do not fit the schema, or are too large.
 */
export const resolveArguments = (
  tool: Pick<AnyTool, 'name' | 'input' | 'raw'>,
  { args, index }: PlannedCall,
  findResult: FindResult,
): Arguments => {
  const fill = (isJson: (path: Path) => boolean): Arguments => {
    let bytes = 0
    const read: FindResult = (step) => {
      const text = findResult(step)
      bytes += Buffer.byteLength(text)
      if (bytes <= maxResultBytes) return text
      throw new MasonError('bad_tool_call', `the results that step ${index} refers to are over 1 MB`, {
        remedy: 'make a step that reads the part that is needed, or refer to fewer results',
      })
    }
    return mapTexts(tool, args, ({ text, path, isPython }) => {
      if (isPython) return resolvePython(text, index, read)
      const whole = isJson(path) ? readWholeReference(text) : null
      const json = whole === null ? undefined : parseJson(findResult(whole))
      return json === undefined ? resolveText(text, read) : json
    })
  }
  const asText = fill(() => false)
  const issues = (tool.input as z.ZodType).safeParse(asText).error?.issues
  if (!issues) return asText
  const unfit = new Set(issues.map(({ path }) => JSON.stringify(path)))
  const lengths = [...new Set(issues.map(({ path }) => path.length))]
  const asJson = fill((path) => lengths.some((end) => unfit.has(JSON.stringify(path.slice(0, end)))))
  const { error } = (tool.input as z.ZodType).safeParse(asJson)
  if (!error) return asJson
  throw new MasonError(
    'bad_tool_call',
    `the arguments of ${tool.name}, with the results in them, are invalid: ${z.prettifyError(error)}`,
  )
}

const jsonSchema = z.json()

const parseJson = (text: string): Json | undefined => jsonSchema.safeParse(tryParseJson(text)).data
