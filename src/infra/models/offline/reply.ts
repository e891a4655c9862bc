import { fillObject, schemaOf } from './fill-schema.ts'
import { aboutMe } from './frames.ts'
import { output } from './output.ts'
import { plan } from './planner.ts'
import { isRecord, readRequest } from './read-request.ts'
import { reflect } from './reflection.ts'
import { languageOf } from './text.ts'
import { understand } from './understand.ts'

export type OfflineReply = { text: string; tool_calls: { name: string; arguments: string }[] }

const asJson = (value: unknown): OfflineReply => ({ text: JSON.stringify(value), tool_calls: [] })

const roleOf = (body: unknown, role: string): string => {
  if (role !== '') return role
  const format = isRecord(body) && isRecord(body.response_format) ? body.response_format : null
  const name = format && isRecord(format.json_schema) ? format.json_schema.name : undefined
  return typeof name === 'string' ? name : 'planner'
}

const byRole = (body: unknown, role: string): OfflineReply => {
  switch (roleOf(body, role)) {
    case 'understand':
      return asJson(understand(body))
    case 'reflection':
      return asJson(reflect(body))
    case 'output':
      return schemaOf(body)
        ? asJson(output(body))
        : { text: String(output(body).answer ?? ''), tool_calls: [] }
    default: {
      const schema = schemaOf(body)
      const { text, tool_calls } = plan(readRequest(body))
      if (schema && tool_calls.length === 0) return asJson(fillObject({ answer: text }, schema, schema))
      return {
        text,
        tool_calls: tool_calls.map(({ name, args }) => ({ name, arguments: JSON.stringify(args) })),
      }
    }
  }
}

/** The offline model as one pure function: a chat body and the role that asks, to text and calls. Never throws. */
export const reply = (body: unknown, role: string): OfflineReply => {
  try {
    return byRole(body, role)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const schema = schemaOf(body)
    const text = `${aboutMe[languageOf(JSON.stringify(body ?? '').slice(0, 2000))]} (${reason})`
    return schema ? asJson(fillObject({}, schema, schema)) : { text, tool_calls: [] }
  }
}
