import { type PythonLiteral, scanPython } from './python-literals.ts'
import { type FindResult, listReferences } from './references.ts'

/**
 * References in a Python program. A result takes the place of one in a plain literal, escaped for it. Python itself reads code,
 * f-strings and comments: they stay as they are, and a variable `results` is there for them.
 */

/** The literals that refer to results. */
const listReferring = (code: string): PythonLiteral[] =>
  code.includes('{results[')
    ? scanPython(code).literals.filter(
        ({ kind, start, end }) => kind !== 'formatted' && listReferences(code.slice(start, end)).length > 0,
      )
    : []

/** The steps that the literals of a program refer to. */
export const listPythonReferences = (code: string): number[] =>
  listReferring(code).flatMap(({ start, end }) => listReferences(code.slice(start, end)))

/** The first reference that no text can take the place of, and what it is in; null where there is none. */
export const findUnfitReference = (code: string): { step: number; place: string } | null => {
  const unfit = listReferring(code).find(({ kind, nested }) => kind !== 'plain' || nested)
  if (!unfit) return null
  const [step = 0] = listReferences(code.slice(unfit.start, unfit.end))
  return { step, place: unfit.kind === 'plain' ? 'a literal in an f-string' : `a ${unfit.kind} literal` }
}

/**
 * The steps, of those before `step`, whose results a program reads from the variable `results`: all of them where it
 * does not name each by its number.
 */
export const listPythonVariables = (code: string, step: number): number[] => {
  if (!code.includes('results')) return []
  const read = maskTexts(code, ({ kind }) => kind !== 'formatted')
  const named = [...read.matchAll(/(?<![\w.])results(?!\w)(?:\[(\d{1,9})\])?/g)]
  const steps = new Set(named.map(([, index]) => index && Number(index)))
  return Array.from({ length: step }, (_, at) => at).filter((at) => steps.has(undefined) || steps.has(at))
}

/** A program with spaces in place of its comments and of what is between the quotes of some literals. */
const maskTexts = (code: string, isMasked: (literal: PythonLiteral) => boolean): string => {
  const { literals, comments } = scanPython(code)
  const pieces: string[] = []
  let from = 0
  for (const { start, end } of [...literals.filter(isMasked), ...comments].sort(
    (a, b) => a.start - b.start,
  )) {
    // a comment in a field is part of its f-string
    if (start < from) continue
    pieces.push(code.slice(from, start), ' '.repeat(end - start))
    from = end
  }
  return pieces.concat(code.slice(from)).join('')
}

/** An escape in a literal, where it is an octal one, where Python refuses it, or a reference. */
const bodyToken =
  /\\(?:([0-7]{1,3})|(x(?![\da-fA-F]{2})|u(?![\da-fA-F]{4})|U(?![\da-fA-F]{8}))|N\{[^{}]{0,100}\}|[^{]|(?=\{))|\{results\[(\d{1,9})\]\}/g

/** A text as a part of a plain literal, whatever its quotes: nothing in it can end the literal. */
const toLiteralText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\\"'\p{Cc}]/gu, (char) =>
      char === '\\' ? '\\\\' : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )

/** The body of a plain literal with results in place of its references; as it is where Python refuses its escapes. */
const resolveBody = (body: string, findResult: FindResult): string => {
  let isRefused = false
  const resolved = body.replace(
    bodyToken,
    (token, octal?: string, refused?: string, step?: string, at = 0) => {
      if (step !== undefined) return toLiteralText(findResult(Number(step)))
      isRefused ||= refused !== undefined
      if (!body.startsWith('{results[', at + token.length)) return token
      // what comes in next must not go on with this escape
      if (octal !== undefined) return `\\${octal.padStart(3, '0')}`
      return token === '\\' ? '\\\\' : token
    },
  )
  return isRefused ? body : resolved
}

const futureImport =
  /(?<=^|[;\r\n])[ \t]*from[ \t]+__future__[ \t]+import(?:\([^)]*\)?|\\\r?\n|[^;\r\n(\\])*/g

/** A program that begins with a statement, behind what must come first; the numbers of its lines stay where that is possible. */
const addStatement = (code: string, statement: string): string => {
  const mask = maskTexts(code, ({ nested }) => !nested)
  const future = [...mask.matchAll(futureImport)].at(-1)
  if (future) {
    const at = future.index + future[0].trimEnd().length
    return `${code.slice(0, at)}; ${statement}${code.slice(at)}`
  }
  const [blank = '', indent = ''] = /^(?:[ \t\f]*(?:\r\n|[\r\n]))*([ \t]*)/.exec(mask) ?? []
  return `${indent}${statement}${/[\r\n]/.test(blank) ? '' : '\n'}${code}`
}

/**
 * The program that runs as this step: results in place of the references in its plain literals, and where it names the
 * variable `results`, a list of the results before it. Results are literals of their own, never code.
 */
export const resolvePython = (code: string, step: number, findResult: FindResult): string => {
  const pieces: string[] = []
  let from = 0
  for (const { kind, nested, start, end } of listReferring(code)) {
    if (kind !== 'plain' || nested) continue
    pieces.push(code.slice(from, start), resolveBody(code.slice(start, end), findResult))
    from = end
  }
  const resolved = pieces.concat(code.slice(from)).join('')
  const read = new Set(listPythonVariables(code, step))
  if (read.size === 0) return resolved
  const items = Array.from({ length: step }, (_, at) =>
    read.has(at) ? JSON.stringify(findResult(at).toWellFormed()) : 'None',
  )
  return addStatement(resolved, `results = [${items.join(', ')}]`)
}
