/** Joins pieces of text. A surrogate pair may be split between two of them, so half of one waits for the next. */
export const createJoiner = (): { push(piece: string): string; rest(): string } => {
  let half = ''
  return {
    push: (piece) => {
      const text = half + piece
      const code = text.charCodeAt(text.length - 1)
      half = code >= 0xd800 && code <= 0xdbff ? text.slice(-1) : ''
      return text.slice(0, text.length - half.length).toWellFormed()
    },
    rest: () => half.toWellFormed(),
  }
}
