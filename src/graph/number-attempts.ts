type OnText = (text: string, attempt: number) => void

/** Attempts go on counting from call to call of one action, so that each voids what was streamed of the one before. */
export const numberAttempts = (onText: OnText): (() => OnText) => {
  let highest = 0
  return () => {
    const base = highest
    return (text, attempt) => {
      highest = Math.max(highest, base + attempt)
      onText(text, base + attempt)
    }
  }
}
