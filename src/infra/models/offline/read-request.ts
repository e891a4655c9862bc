import type { Json } from '../../../state/runtime-state.ts'
import { fencedLines, unfenced } from './fences.ts'

/** What a planner, output, … request says, read from its chat messages. Nothing here throws: odd input reads as empty. */

export type Call = { name: string; args: Record<string, Json> }
/** A call of this turn; `result` is null while nothing came back, `failed` when it was refused or came back as an error. */
export type Made = Call & { result: string | null; failed: boolean; index: number }
export type FileInfo = {
  name: string
  type: string
  bytes: number | null
  lines: number | null
  preview: readonly string[]
}
export type Piece = { id: string; type: string; expected: string }
type Sections = ReadonlyMap<string, string>
export type Request = {
  sections: Sections
  prompt: string
  files: readonly FileInfo[]
  pieces: readonly Piece[]
  conversation: readonly { role: 'user' | 'assistant'; text: string }[]
  /** What is remembered of the user, and what his profile says, a statement a line. */
  memory: readonly string[]
  profile: readonly string[]
  hasTodos: boolean
  made: readonly Made[]
  tools: ReadonlySet<string>
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Text of a message, also when it comes in parts. */
export const contentText = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('')
}

const plannerTitles = [
  'Request',
  'Files',
  'User',
  'Memory',
  'Scenario',
  'Goal',
  'Output style',
  'Output structure',
  'Session summary',
  'Conversation',
  'From earlier turns',
  'CURRENT PLAN STATUS',
  'YOUR CURRENT TASK',
]
const judgeTitles = [...plannerTitles, 'Draft', 'Results']

/** Sections by title; only known titles, each once, start one, so that a request may hold lines with # itself. */
const readSections = (text: string, titles: readonly string[]): Sections => {
  const sections = new Map<string, string[]>()
  let open: string[] | null = null
  let mark: string | null = null
  for (const line of text.split('\n')) {
    const opened: string | undefined =
      mark === null ? /^<(data-[0-9a-f]+) origin=/.exec(line)?.[1] : undefined
    if (opened !== undefined) mark = opened
    else if (mark !== null && line === `</${mark}>`) mark = null
    const title = mark === null ? /^# (.+?)\s*$/.exec(line)?.[1] : undefined
    if (title !== undefined && titles.includes(title) && !sections.has(title)) {
      open = []
      sections.set(title, open)
    } else open?.push(line)
  }
  return new Map([...sections].map(([title, lines]) => [title, lines.join('\n').trim()]))
}

const readFiles = (text: string): FileInfo[] => {
  const files: (FileInfo & { preview: string[] })[] = []
  for (const line of text.split('\n')) {
    const preview = /^\s{2,}\| ?(.*)$/.exec(line)
    const head = /^- (.+?)(?: \(([^()]*)\))?\s*$/.exec(line)
    if (preview) files.at(-1)?.preview.push(preview[1] ?? '')
    else if (head) {
      const facts = head[2] ?? ''
      const count = (unit: RegExp): number | null => {
        const digits = unit.exec(facts)?.[1]
        return digits === undefined ? null : Number(digits.replaceAll(',', ''))
      }
      files.push({
        name: (head[1] ?? '').trim(),
        type: facts.split(',')[0]?.trim() ?? '',
        bytes: count(/([\d,]*\d) bytes?/),
        lines: count(/([\d,]*\d) lines?/),
        preview: [],
      })
    }
  }
  return files
}

const readPieces = (text: string): Piece[] =>
  text.split('\n').flatMap((line) => {
    const m = /^- ([^\s(]+)(?: \(([^)]*)\))?:?\s*(.*)$/.exec(line)
    return m ? [{ id: m[1] ?? '', type: m[2] ?? 'text', expected: m[3] ?? '' }] : []
  })

/** What was said; lines on actions, which begin with a dash, and their results, which are fenced, stand between. */
const readConversation = (text: string): Request['conversation'] => {
  const turns: { role: 'user' | 'assistant'; text: string }[] = []
  let isOpen = false
  for (const { line, isInside } of fencedLines(text)) {
    const m = isInside ? null : /^(?:- )?(user|assistant)(?: \(turn \d+\))?: ?(.*)$/.exec(line)
    const last = turns.at(-1)
    if (m) turns.push({ role: m[1] === 'user' ? 'user' : 'assistant', text: m[2] ?? '' })
    else if (isInside || /^- action \d|^\[messages left out\]$/.test(line)) isOpen = false
    else if (last && isOpen) last.text += `\n${line.replace(/^ {2}/, '')}`
    if (m) isOpen = true
  }
  return turns
}

const readLines = (text: string): string[] =>
  text.split('\n').flatMap((line) => line.replace(/^- /, '').trim() || [])

const readArguments = (text: unknown): Record<string, Json> => {
  if (typeof text !== 'string') return {}
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? (value as Record<string, Json>) : {}
  } catch {
    return {}
  }
}

export const isError = (result: string): boolean =>
  /^\s*(?:\[?error\]?\b|failed\b|refused\b|错误)/i.test(result) || /^\s*\{\s*"(?:error|isError)"/.test(result)

/** The calls of this turn with what came back. A call without a result that a correction speaks of counts as failed. */
const readMade = (messages: readonly Record<string, unknown>[]): Made[] => {
  const made: (Made & { id: string; batch: number })[] = []
  let batch = 0
  for (const message of messages) {
    if (message.role === 'assistant') batch += 1
    if (message.role === 'assistant' && Array.isArray(message.tool_calls))
      for (const call of message.tool_calls) {
        if (!isRecord(call) || !isRecord(call.function)) continue
        const name = String(call.function.name ?? '')
        const args = readArguments(call.function.arguments)
        made.push({
          id: String(call.id ?? ''),
          batch,
          name,
          args,
          result: null,
          failed: false,
          index: made.length,
        })
      }
    if (message.role === 'tool') {
      const text = unfenced(contentText(message.content))
      const call = made.findLast(({ id }) => id === String(message.tool_call_id ?? ''))
      if (call && !/^(?:\[no result\]|Not run: )/.test(text))
        Object.assign(call, { result: text, failed: isError(text) })
    }
    if (message.role === 'user' && /^\s*# Correction/.test(contentText(message.content))) {
      const text = contentText(message.content)
      const last = made.filter((call) => call.batch === batch)
      const named = last.filter(
        (call) => text.includes(call.name) || (call.id !== '' && text.includes(call.id)),
      )
      if (!last.some((call) => call.failed))
        for (const call of named.length > 0 ? named : last)
          Object.assign(call, { result: text, failed: true })
    }
  }
  return made
}

const readTools = (tools: unknown): ReadonlySet<string> =>
  new Set(
    (Array.isArray(tools) ? tools : []).flatMap((tool) =>
      isRecord(tool) && isRecord(tool.function) && typeof tool.function.name === 'string'
        ? [tool.function.name]
        : [],
    ),
  )

export const messagesOf = (body: unknown): Record<string, unknown>[] =>
  isRecord(body) && Array.isArray(body.messages) ? body.messages.filter(isRecord) : []

const firstUserText = (messages: readonly Record<string, unknown>[], title: RegExp): string => {
  const users = messages.filter((m) => m.role === 'user').map((m) => contentText(m.content))
  return users.find((text) => title.test(text)) ?? users.at(-1) ?? ''
}

/** The whole request; a message without sections is the prompt itself, so that plain chat works too. */
export const readRequest = (body: unknown, role: 'planner' | 'judge' = 'planner'): Request => {
  const messages = messagesOf(body)
  const text = firstUserText(messages, /^# (?:Request|Draft|Results)\s*$/m)
  const sections = readSections(text, role === 'planner' ? plannerTitles : judgeTitles)
  const section = (title: string): string => unfenced(sections.get(title) ?? '')
  return {
    sections,
    prompt: sections.has('Request') ? section('Request') : sections.size === 0 ? text.trim() : '',
    files: readFiles(section('Files')),
    pieces: readPieces(section('Output structure')),
    conversation: readConversation(
      `${sections.get('From earlier turns') ?? ''}\n${sections.get('Conversation') ?? ''}`,
    ),
    memory: readLines(section('Memory')),
    profile: readLines(section('User')),
    hasTodos: messages.some(
      (m) => m.role === 'user' && /^# CURRENT PLAN STATUS\n- \[/m.test(contentText(m.content)),
    ),
    made: readMade(messages),
    tools: readTools(isRecord(body) ? body.tools : undefined),
  }
}
