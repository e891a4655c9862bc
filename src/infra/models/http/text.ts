import { compileExpression, type Expression, ExpressionFault } from '../../formats/expression.ts'
import { templateFunctions } from './functions.ts'
import { namesIn } from './names.ts'

/** A text with `{{expression}}` in it, compiled. `key` is the place of the secret. */
export type Text = {
  pieces: readonly ({ kind: 'literal'; text: string } | { kind: 'key' } | Filled)[]
  uses: ReadonlySet<string>
}
type Filled = { kind: 'value'; expression: Expression }

export type TextRules = { known: ReadonlySet<string>; mayHoldKey: boolean }

/** Thrown where a text is no template; says what and where in the text. */
export class TextFault extends Error {}

const quotes = new Set(["'", '"', '`'])

/** Where the expression that begins at `from` ends: at the `}}` outside its own braces and quotes. -1: nowhere. */
const endOf = (text: string, from: number): number => {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (quotes.has(character)) {
      for (at += 1; at < text.length && text.charAt(at) !== character; at += 1) {
        if (text.charAt(at) === '\\') at += 1
      }
    } else if (character === '{') depth += 1
    else if (character === '}' && depth > 0) depth -= 1
    else if (character === '}' && text.charAt(at + 1) === '}') return at
  }
  return -1
}

const compileOne = (
  source: string,
  { known }: TextRules,
): { expression: Expression; fields: Set<string> } => {
  const shown = source.length > 100 ? `${source.slice(0, 99)}…` : source
  if (source === '') throw new TextFault('{{}} holds no expression')
  if (source.length > 4000) throw new TextFault(`{{${shown}}} is longer than 4000 characters`)
  try {
    const expression = compileExpression(source, templateFunctions)
    const { fields, unbound } = namesIn(source)
    const [variable] = unbound
    if (variable !== undefined) throw new TextFault(`{{${shown}}}: there is no variable $${variable}`)
    const strange = [...fields].find((name) => !known.has(name))
    if (strange === undefined) return { expression, fields }
    const names = [...known].join(', ')
    throw new TextFault(`{{${shown}}}: there is no field ${strange}; there are: ${names}`)
  } catch (error) {
    if (error instanceof TextFault) throw error
    const place = error instanceof ExpressionFault ? ` at character ${error.position}` : ''
    const said = error instanceof Error ? error.message : String(error)
    throw new TextFault(`{{${shown}}} is no JMESPath expression: ${said}${place}`)
  }
}

/** Throws TextFault. */
export const compileText = (text: string, rules: TextRules): Text => {
  const pieces: Text['pieces'][number][] = []
  const uses = new Set<string>()
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    const literal = text.slice(at, open === -1 ? undefined : open)
    if (literal !== '') pieces.push({ kind: 'literal', text: literal })
    if (open === -1) return { pieces, uses }
    const close = endOf(text, open + 2)
    if (close === -1) throw new TextFault('{{ has no }}')
    const source = text.slice(open + 2, close).trim()
    if (source === 'key') {
      if (!rules.mayHoldKey) throw new TextFault('{{key}} may stand in headers only')
      pieces.push({ kind: 'key' })
    } else {
      const { expression, fields } = compileOne(source, rules)
      for (const name of fields) uses.add(name)
      pieces.push({ kind: 'value', expression })
    }
    at = close + 2
  }
}
