/**
 * The start of a text, `max` characters at most with the `…` that shows the cut; never half a character.
 *
 * @example
 * ```ts
 * import { cutText } from 'mason-runtime'
 *
 * console.log(cutText('a long text', 6))
 * ```
 */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
