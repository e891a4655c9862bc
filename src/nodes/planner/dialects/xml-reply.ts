import type { ReadCall } from '../../../dialogue/events.ts'
import { type DialogueReply, readReply } from '../../../dialogue/reply.ts'
import { ownServer } from '../../../dialogue/results.ts'
import { readCallBody } from '../../../graph/call-body.ts'
import { findReferenceErrors } from '../../../graph/references.ts'
import type { ToolCallRequest } from '../../../state/ports/model-messages.ts'
import type { ModelReply } from '../../../state/ports/models.ts'
import { contentHash } from '../../../state/text/content-hash.ts'
import { finishTool, type Interpretation, interpretReply, type Offer, updateTodosTool } from './interpret.ts'

const controls: readonly string[] = [updateTodosTool, finishTool]

/** Reads a reply in the language: the block that runs, the answer, and a note for each part that does not count. */
export const readXmlReply = (reply: ModelReply, known: Offer): Interpretation => {
  const whole = readReply(reply.text)
  // an answer that was cut stands as far as it goes
  const isCutAnswer = reply.finish === 'length' && whole.answer !== null && whole.blocks.length === 0
  const read = isCutAnswer ? { ...whole, error: null } : whole
  const block = read.blocks.at(-1)
  const calls = (read.error === null ? (block?.calls ?? []) : []).map((call) => ({
    call,
    request: toRequest(call, reply.text),
  }))
  const unknown = calls.filter(({ call }) => !isKnown(call, known))
  const found = interpretReply(
    {
      text: readText(read),
      reasoning: [reply.reasoning, read.thought].filter((text) => text.trim() !== '').join('\n'),
      tool_calls: calls.filter((one) => !unknown.includes(one)).map(({ request }) => request),
    },
    known,
    readCallBody,
  )
  const isSequential = block?.block === 'sequential'
  // one call alone runs as a native one does
  if (block && block.block !== 'single')
    Object.assign(found, { block: isSequential ? 'sequential' : 'parallel', leading_reads: 0 })
  // without its refused calls a block has other numbers
  const isRefused = unknown.length + found.errors.length > 0
  const findTool = (name: string) => known.tools.find((tool) => tool.name === name)
  const references = isRefused ? [] : findReferenceErrors(found.calls, findTool, isSequential)
  const cut = (reply.cut ?? 0) + (read.cut?.chars ?? 0)
  return {
    ...found,
    errors: [
      ...(read.error === null ? [] : [{ call: null, error: read.error }]),
      ...unknown.map(({ call, request }) => ({ call: request, error: describeUnknown(call, known) })),
      ...found.errors,
      ...references.map(({ error }) => ({ call: null, error })),
    ],
    notes: [...found.notes, ...listNotes(read, found)],
    on_failure: isSequential ? 'stop' : 'go_on',
    wrote: read.written,
    ...(cut > 0 && { cut }),
  }
}

/** The answer, or what is said beside calls or in place of both. */
const readText = ({ answer, said, blocks }: DialogueReply): string =>
  blocks.length > 0 && said !== '' ? said : (answer ?? said)

/** The same reply gives the same ids. */
const toRequest = ({ tool, body, index }: ReadCall, text: string): ToolCallRequest => ({
  id: `call_${contentHash([text, index]).slice(0, 16)}`,
  name: tool,
  arguments: body,
})

const serverOf = ({ server = ownServer }: { server?: string }): string => server

const isKnown = ({ server, tool }: ReadCall, { tools, outputs }: Offer): boolean =>
  controls.includes(tool)
    ? server === ownServer
    : [...tools, ...outputs].some((one) => one.name === tool && serverOf(one) === server)

const describeUnknown = ({ server, tool }: ReadCall, { tools }: Offer): string => {
  const names = [
    ...tools.map((one) => `${serverOf(one)}/${one.name}`),
    ...controls.map((name) => `${ownServer}/${name}`),
  ]
  return `no tool '${tool}' on server '${server}'; the tools are: ${names.join(', ')}`
}

/** What of a reply does not count, and why. */
const listNotes = (
  { answer, answers, blocks, isExecuted, cut }: DialogueReply,
  { calls }: Interpretation,
) => [
  ...(calls.length > 0 && answer !== null
    ? ['the answer beside calls was dropped: answer once they have come back']
    : []),
  ...(calls.length === 0 && answers > 1 ? [`of ${answers} answers the last one counts`] : []),
  ...(blocks.length > 1
    ? [`only the block right before <execute_tools /> runs; ${blocks.length - 1} before it did not run`]
    : []),
  ...(blocks.length > 0 && !isExecuted
    ? ['<execute_tools /> was missing after the calls; they ran as if it were there']
    : []),
  ...(cut === null
    ? []
    : [
        cut.at === 'size'
          ? `the reply was cut at 1 MB; ${cut.chars} characters more were not taken`
          : `${cut.chars} characters after the end of the reply were not taken`,
      ]),
]
