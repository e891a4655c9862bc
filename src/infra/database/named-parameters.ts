import { MasonError } from '../../state/errors.ts'
import type { SqlValues } from '../../state/ports/sql.ts'

/** A text as drivers take it: `$1` is the value of the first of `names`. */
type Compiled = { text: string; names: readonly string[] }

/** Texts are constants, or made of a few parts. What is beyond this is compiled each time and never kept. */
const maxCompiled = 1000

const letter = '\\w\\u0080-\\uffff'
/** Comments may hold comments: to three levels. */
const comment = ['', '', ''].reduce((inner) => `/\\*(?:(?!/\\*|\\*/)[^]|${inner})*\\*/`, '(?!)')
/** In `$total$` a dollar follows a name: that is the beginning of a string. Words come whole, since they may have dollars. */
const tokens = new RegExp(
  [
    `[eE]'(?:[^'\\\\]|\\\\[^]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"`,
    `--.*|${comment}`,
    `(?<quote>\\$(?:[A-Za-z_\\u0080-\\uffff][${letter}]*)?\\$)[^]*?\\k<quote>`,
    `[${letter}][${letter}$]*`,
    `(?<place>\\$\\d+)`,
    `\\$(?<name>[A-Za-z_]\\w*)`,
  ].join('|'),
  'g',
)

const fail = (problem: string, text: string, remedy: string): never => {
  throw new MasonError('internal', `${problem}: ${text.replaceAll(/\s+/g, ' ').trim().slice(0, 500)}`, {
    remedy,
  })
}

const compile = (text: string): Compiled => {
  const names: string[] = []
  const numbered = text.replaceAll(tokens, (token, ...captured) => {
    const { name, place } = captured.at(-1) as { name?: string; place?: string }
    if (place) fail(`${place} is in a statement with named values`, text, 'name each parameter of it')
    if (name === undefined) return token
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return { text: numbered, names }
}

/** As the database can hold it: U+FFFD in place of NUL, as in place of half a surrogate pair. In JSON both are escapes. */
const toParameter = (value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value

/**
 * Gives drivers what `query` was given: a list for `$1…` as it is, named values for `$name`s by a text that is compiled
 * once. A name without a value, and a value that no name takes, are errors before anything is sent.
 */
export const createBinding = () => {
  const compiled = new Map<string, Compiled>()
  const getCompiled = (text: string): Compiled => {
    const known = compiled.get(text)
    if (known) return known
    const made = compile(text)
    if (compiled.size < maxCompiled) compiled.set(text, made)
    return made
  }
  return (text: string, values: SqlValues = []): { text: string; values: unknown[] } => {
    if (isValueList(values)) return { text, values: values.map(toParameter) }
    const { text: numbered, names } = getCompiled(text)
    const list = names.map((name) =>
      values[name] === undefined
        ? fail(`the statement has no value for $${name}`, text, `pass ${name}, or null`)
        : toParameter(values[name]),
    )
    let given = 0
    for (const name in values)
      if (++given > names.length || !names.includes(name))
        fail(`the statement does not use the value ${name}`, text, `write $${name} in it, or pass no ${name}`)
    return { text: numbered, values: list }
  }
}

/** Whether values are for `$1` and on. */
export const isValueList = (values: SqlValues): values is readonly unknown[] => Array.isArray(values)
