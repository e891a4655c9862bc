import { reply } from '../../src/infra/models/offline/reply.ts'
import { workOut } from '../../src/tools/calculate/expression.ts'
import { compilePattern } from '../../src/tools/files/pattern.ts'
import { splitLines } from '../../src/tools/files/text.ts'

/** A planner's turn with the offline model: its calls are answered as Mason's tools answer, until it gives a text. */

type Files = Record<string, string>
type Args = Record<string, unknown>
type Made = { name: string; args: Args; result: string }
export type Chat = {
  files?: Files
  tools?: readonly string[]
  /** Whether `# Files` shows sizes and first lines. */
  previews?: boolean
  conversation?: string
  structure?: string
  user?: string
  memory?: string
  /** Takes the place of a tool's result. */
  instead?: (name: string, args: Args) => string | undefined
}
export type Outcome = { text: string; made: Made[]; preparations: string[] }

export const allTools = ['search_file_content', 'read_file', 'calculate', 'ask_user', 'update_todos']

const readFile = (name: string, lines: readonly string[], args: Args): string => {
  if (lines.length === 0) return `File '${name}' is empty.`
  const first = Number(args.start_line ?? 1)
  const wanted = Math.min(Number(args.end_line ?? lines.length), lines.length)
  const last = Math.min(wanted, first + 1999)
  const shown = lines.slice(first - 1, last).map((line, i) => `${first + i}: ${line}`)
  const more = last < wanted ? [`[more: call read_file again with start_line=${last + 1}]`] : []
  return [`File '${name}', lines ${first}-${last} of ${lines.length}:`, ...shown, ...more].join('\n')
}

const search = (name: string, lines: readonly string[], source: string): string => {
  const compiled = compilePattern(source)
  if (!compiled.ok) return compiled.fault
  const found = lines.flatMap((line, i) =>
    compiled.pattern.find(line) ? [`[Line ${i + 1}: ${line.trim()}]`] : [],
  )
  if (found.length === 0) return `No matches found in '${name}' for pattern '${source}'.`
  const more = found.length > 200 ? ` (and ${found.length - 200} more matching lines)` : ''
  return `Matches in '${name}': ${found.slice(0, 200).join(', ')}${more}`
}

const runTool = (files: Files, name: string, args: Args): string => {
  if (name === 'calculate') {
    const expression = String(args.expression)
    const worked = workOut(expression)
    return worked.ok ? `${expression.slice(0, 200)} = ${worked.value}` : `Error: ${worked.fault}`
  }
  if (name === 'update_todos') return 'The plan is updated.'
  const path = String(args.file_path)
  const text = files[path]
  if (text === undefined) return `Error: File not found at path '${path}'.`
  const lines = splitLines(text)
  return name === 'read_file' ? readFile(path, lines, args) : search(path, lines, String(args.pattern))
}

const filesSection = (files: Files, previews: boolean): string =>
  Object.entries(files)
    .map(([name, text]) => {
      const lines = splitLines(text)
      if (!previews) return `- ${name} (text/plain)`
      const head = `- ${name} (text/plain, ${Buffer.byteLength(text)} bytes, ${lines.length} lines)`
      return [head, ...lines.slice(0, 5).map((line) => `    | ${line}`)].join('\n')
    })
    .join('\n')

export const userMessage = (prompt: string, chat: Chat): string =>
  [
    `# Request\n${prompt}`,
    Object.keys(chat.files ?? {}).length > 0
      ? `# Files\n${filesSection(chat.files ?? {}, chat.previews ?? true)}`
      : '',
    chat.structure ? `# Output structure\n${chat.structure}` : '',
    chat.user ? `# User\n${chat.user}` : '',
    chat.memory ? `# Memory\n${chat.memory}` : '',
    chat.conversation ? `# Conversation\n${chat.conversation}` : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n')

export const toolList = (names: readonly string[]) =>
  names.map((name) => ({
    type: 'function',
    function: { name, description: name, parameters: { type: 'object' } },
  }))

/** Plays one turn; throws when the model does not come to an end within 20 replies. */
export const play = (prompt: string, chat: Chat = {}): Outcome => {
  const messages: unknown[] = [
    { role: 'system', content: 'You are the planner of an agent.' },
    { role: 'user', content: userMessage(prompt, chat) },
  ]
  const tools = toolList(chat.tools ?? allTools)
  const outcome: Outcome = { text: '', made: [], preparations: [] }
  for (let turn = 0; turn < 20; turn++) {
    const { text, tool_calls } = reply({ model: 'mason-offline', messages, tools }, 'planner')
    if (tool_calls.length === 0) return { ...outcome, text }
    outcome.preparations.push(text)
    const calls = tool_calls.map((call, i) => ({ id: `call_${turn}_${i}`, type: 'function', function: call }))
    messages.push({ role: 'assistant', content: text, tool_calls: calls })
    for (const { id, function: call } of calls) {
      const args = JSON.parse(call.arguments) as Args
      const result = chat.instead?.(call.name, args) ?? runTool(chat.files ?? {}, call.name, args)
      outcome.made.push({ name: call.name, args, result })
      messages.push({ role: 'tool', tool_call_id: id, content: result })
    }
  }
  throw new Error(`no end after 20 replies: ${JSON.stringify(outcome.made.slice(-3))}`)
}

export const callsOf = (outcome: Outcome, name: string): Args[] =>
  outcome.made.filter((made) => made.name === name).map(({ args }) => args)
