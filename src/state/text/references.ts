/** `{results[N]}` in the arguments of a call stands for the result of step N of its block. */
const pattern = /\{results\[(-?\d{1,9})\]\}/g
const wholePattern = /^\s*\{results\[(\d{1,9})\]\}\s*$/

/** The text of the result of a step. */
export type FindResult = (step: number) => string

/** The steps that a text refers to. */
export const listReferences = (text: string): number[] =>
  [...text.matchAll(pattern)].map(([, step]) => Number(step))

/** The step that a text refers to which is nothing but a reference, else null. */
export const readWholeReference = (text: string): number | null => {
  const step = wholePattern.exec(text)?.[1]
  return step === undefined ? null : Number(step)
}

/** A text with results in place of the references to them. What is in a result is text: no reference, no order. */
export const resolveText = (text: string, findResult: FindResult): string =>
  text.replace(pattern, (_, step: string) => findResult(Number(step)))
