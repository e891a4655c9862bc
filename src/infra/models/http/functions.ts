import type { Json } from '../../../state/runtime-state.ts'
import type { ExtraFunctions } from '../../formats/expression.ts'
import { isStrictSchema } from '../openai/json-schema.ts'

/** Functions that request templates have beside those of JMESPath: what vendors' shapes need and paths can't say. */

type Members = { [name: string]: Json }

const isObject = (value: Json | undefined): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fromJson = (text: Json | undefined): Json => {
  if (typeof text !== 'string') return text ?? null
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

/** An object or a list without what is null in it. Anything else stays as it is. */
const compact = (value: Json | undefined): Json => {
  if (Array.isArray(value)) return value.filter((one) => one !== null)
  if (!isObject(value)) return value ?? null
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
}

/** Neighbours that agree in `by` become one, their lists `list` put together: vendors that want turns to alternate. */
const joinNeighbours = (items: Json | undefined, by: Json | undefined, list: Json | undefined): Json => {
  if (!Array.isArray(items) || typeof by !== 'string' || typeof list !== 'string') return items ?? null
  const joined: Members[] = []
  for (const item of items) {
    if (!isObject(item)) continue
    const before = joined.at(-1)
    const [own, others] = [item[list], before?.[list]]
    if (before === undefined || before[by] !== item[by] || !Array.isArray(own) || !Array.isArray(others)) {
      joined.push({ ...item })
    } else before[list] = [...others, ...own]
  }
  return joined
}

export const templateFunctions: ExtraFunctions = {
  from_json: { arity: 1, call: fromJson },
  to_json: { arity: 1, call: (value) => JSON.stringify(value ?? null) },
  compact: { arity: 1, call: compact },
  join_neighbours: { arity: 3, call: joinNeighbours },
  /** Whether OpenAI's strict mode takes a schema. */
  is_strict: { arity: 1, call: (schema) => isObject(schema) && isStrictSchema(schema) },
}
