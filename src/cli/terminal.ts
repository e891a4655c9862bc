import { createColors } from 'picocolors'
import type { Environment } from '../infra/config.ts'

/** Where a command writes for people, and what that place can show. */
export type Terminal = {
  out: NodeJS.WriteStream
  /** Whether lines already written can be redrawn. */
  live: boolean
  /** Whether somebody can be asked. */
  canAsk: boolean
  colors: ReturnType<typeof createColors>
}

/** Colours only on a terminal, and never where NO_COLOR is set (no-color.org). */
export const openTerminal = (
  env: Environment,
  out: NodeJS.WriteStream = process.stdout,
  input: NodeJS.ReadStream = process.stdin,
): Terminal => {
  const live = out.isTTY === true && env.TERM !== 'dumb'
  return { out, live, canAsk: live && input.isTTY === true, colors: createColors(live && !env.NO_COLOR) }
}

/** Model text may hold anything; control sequences must not reach the terminal. Tabs and line ends stay. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')

export const oneLine = (text: string): string => printable(text.replace(/\s+/g, ' ').trim())

/** East Asian characters take two columns. */
const widthOf = (character: string): number =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60]|\p{Emoji_Presentation}/u.test(
    character,
  )
    ? 2
    : 1

/** At most `width` columns, with an ellipsis where something is left out. */
export const cutToWidth = (text: string, width: number): string => {
  let used = 0
  let kept = ''
  for (const character of text) {
    used += widthOf(character)
    if (used > width - 1) return used === width && kept + character === text ? text : `${kept}…`
    kept += character
  }
  return text
}

/** 1234567 as 1,234,567. */
export const grouped = (count: number): string => count.toLocaleString('en-US')

export const plural = (count: number, noun: string): string =>
  `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`

/** Seconds with one digit, minutes where there are many. */
export const duration = (ms: number): string =>
  ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
