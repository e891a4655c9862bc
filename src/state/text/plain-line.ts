import { cutText } from './cut-text.ts'

/** A text of others as one line of at most `max` characters, in which nothing is hidden or turned. */
export const toPlainLine = (text: string, max: number): string =>
  cutText(text.replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim(), max)

/** The lines of a text on one line, blank ones left out. */
export const joinLines = (text: string): string => text.trim().replaceAll(/(?<!\s)\s*\n\s*/g, ' / ')
