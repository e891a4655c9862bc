/** How far a campaign is. Those who act wait here until others have come far enough. */
export class Progress {
  kills = 0
  stops = 0
  ended = 0
  submitted = 0
  /** Workers that ended before they were ready, as they do without a database. */
  refusals = 0
  readonly #waiting = new Set<() => void>()

  /** Adds to one of the counts. */
  count(what: 'kills' | 'stops' | 'ended' | 'submitted' | 'refusals', by = 1): void {
    this[what] += by
    for (const look of this.#waiting) look()
  }

  /** Resolves once this is true of the counts. */
  until(isTrue: (progress: this) => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#waiting.delete(look)
        signal.removeEventListener('abort', onAbort)
        act()
      }
      const look = (): void => {
        if (isTrue(this)) settle(resolve)
      }
      const onAbort = (): void => settle(() => reject(signal.reason))
      signal.throwIfAborted()
      this.#waiting.add(look)
      signal.addEventListener('abort', onAbort)
      look()
    })
  }
}
