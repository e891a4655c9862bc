import { promptText } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { fillOutput } from './output.ts'
import { plan } from './planner.ts'
import type { OfflineReply, OfflineRequest } from './request.ts'
import { reflect, understand } from './roles.ts'
import { toNativeRequest, writeReply } from './written.ts'

/** Values as an answer of a schema: those of its properties; what is not known is null. */
const asJson = (values: Record<string, Json>, { schema }: OfflineRequest): OfflineReply => {
  const names = Object.keys(schema?.properties ?? values)
  return {
    text: JSON.stringify(Object.fromEntries(names.map((name) => [name, values[name] ?? null]))),
    tool_calls: [],
  }
}

/**
 * The model that serves without a key: rules over the parts of a prompt. It counts, adds up, filters, groups and ranks
 * through query_table, does sums through calculate, searches texts through search_file_content, recalls what is
 * remembered of the user, and for all else says how to set a key. Pure: the same request gives the same reply.
 */
export const answerOffline = (request: OfflineRequest): OfflineReply => {
  switch (request.role) {
    case 'understand':
      return asJson(understand(request), request)
    case 'reflection':
      return asJson(reflect(request), request)
    case 'distill':
    case 'compaction':
      // rules of their own sum up and learn better than these could
      return asJson({ summary: cutText(promptText(request.parts ?? []), 2000) }, request)
    case 'output':
      return asJson(fillOutput(request), request)
    default: {
      const reply = plan(request)
      const isText = request.schema === undefined || reply.tool_calls.length > 0
      return isText ? reply : asJson({ answer: reply.text }, request)
    }
  }
}

/** The same for a planner whose calls are text in the language of the dialogue: the same decisions, written out. */
export const answerInWriting = (request: OfflineRequest): OfflineReply =>
  writeReply(answerOffline(toNativeRequest(request)), request)
