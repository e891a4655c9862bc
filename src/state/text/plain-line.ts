import { cutText } from './cut-text.ts'

/** A text of others as one line of at most `max` characters, in which nothing is hidden or turned. */
export const toPlainLine = (text: string, max: number): string =>
  cutText(text.replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim(), max)
