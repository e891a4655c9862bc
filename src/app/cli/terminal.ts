import { createColors } from 'picocolors'
import type { Environment } from '../../infra/config/config.ts'

/** The output of a command for people, and what it can show. */
export type Terminal = {
  out: NodeJS.WriteStream
  /** Whether printed lines can be redrawn. */
  live: boolean
  /** Whether a person can be asked. */
  canAsk: boolean
  colors: ReturnType<typeof createColors>
}

/** Uses colors only on a terminal, and never where NO_COLOR is set (https://no-color.org). */
export const openTerminal = (
  env: Environment,
  out: NodeJS.WriteStream = process.stdout,
  input: NodeJS.ReadStream = process.stdin,
): Terminal => {
  const live = out.isTTY === true && env.TERM !== 'dumb'
  return { out, live, canAsk: live && input.isTTY === true, colors: createColors(live && !env.NO_COLOR) }
}

/** Removes control characters but tabs and line ends, because model text must not control the terminal. */
export const toPrintable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')

/** The text as one printable line; white space becomes single spaces. */
export const toOneLine = (text: string): string => toPrintable(text.replace(/\s+/g, ' ').trim())

/** East Asian characters take two columns. */
const measureWidth = (character: string): number =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60]|\p{Emoji_Presentation}/u.test(
    character,
  )
    ? 2
    : 1

/** Cuts a text to at most `width` columns, with an ellipsis at the cut. */
export const cutToWidth = (text: string, width: number): string => {
  let used = 0
  let prefix = ''
  for (const character of text) {
    used += measureWidth(character)
    if (used > width - 1) return used === width && prefix + character === text ? text : `${prefix}…`
    prefix += character
  }
  return text
}

/** 1234567 as 1,234,567. */
export const formatCount = (count: number): string => count.toLocaleString('en-US')

/** A count with its noun, such as `1 key` or `2 keys`. */
export const formatPlural = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`

/** A duration such as `1.5 s` or `2 min 3 s`. */
export const formatDuration = (ms: number): string =>
  ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
