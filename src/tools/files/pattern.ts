import { setImmediate } from 'node:timers/promises'
import { RE2JS, RE2JSException } from 're2js'

/** Regular expressions from models run on RE2: time linear in the text, whatever the pattern. */

/** Of longer lines only the start is searched: one line is the longest step that a cancel has to wait for. */
export const maxSearchedLength = 500_000
const charsBetweenPauses = 16 * 1024

/** Offsets of the first match in a line, or null. */
export type LineMatch = { start: number; end: number }
/** Finds the first match in a line; a long line is searched at its start only. */
export type LinePattern = { find(line: string): LineMatch | null }
/** A pattern, or why it cannot be used. */
export type CompiledPattern = { ok: true; pattern: LinePattern } | { ok: false; error: string }

/** Compiles an RE2 pattern: linear time, no look-around or back-references. */
export const compilePattern = (source: string): CompiledPattern => {
  try {
    const compiled = RE2JS.compile(source)
    return { ok: true, pattern: { find: (line) => findIn(compiled, line.slice(0, maxSearchedLength)) } }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const reason = error.message.replace(/^error parsing regexp: /, '')
    const hint = 'The syntax is RE2: no look-around, no back-references.'
    return { ok: false, error: `Error: Invalid pattern '${source}': ${reason}. ${hint}` }
  }
}

/** `test` is many times faster than finding the place, and most lines do not match. */
const findIn = (compiled: RE2JS, line: string): LineMatch | null => {
  if (!compiled.test(line)) return null
  const matcher = compiled.matcher(line)
  return matcher.find() ? { start: matcher.start(), end: matcher.end() } : null
}

/**
 * Calls `visit` with each line from `first` to `last` (1-based, inclusive) until it gives false. Lets other work
 * of the process go on in between, so that heartbeats beat; rejects with the signal's reason when aborted.
 */
export const eachLine = async (
  lines: readonly string[],
  { first, last }: { first: number; last: number },
  visit: (line: string, number: number) => boolean,
  signal: AbortSignal,
): Promise<void> => {
  let left = charsBetweenPauses
  for (let number = first; number <= last; number += 1) {
    const line = lines[number - 1] ?? ''
    left -= line.length + 1
    if (left <= 0) {
      await setImmediate()
      signal.throwIfAborted()
      left = charsBetweenPauses
    }
    if (!visit(line, number)) return
  }
}

/** The first `max` lines that match, each as `show` gives it, and how many match. */
export const findLines = async (
  lines: readonly string[],
  pattern: LinePattern,
  max: number,
  show: (line: string, number: number, match: LineMatch) => string,
  signal: AbortSignal,
): Promise<{ shown: string[]; total: number }> => {
  const shown: string[] = []
  let total = 0
  const visit = (line: string, number: number): true => {
    const match = pattern.find(line)
    if (match) total += 1
    if (match && total <= max) shown.push(show(line, number, match))
    return true
  }
  await eachLine(lines, { first: 1, last: lines.length }, visit, signal)
  return { shown, total }
}
