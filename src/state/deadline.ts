/**
 * A signal that aborts with `signal`, or after `ms` with a TimeoutError. Disposing it lets go of both. It is not
 * `AbortSignal.any([signal, AbortSignal.timeout(ms)])`: Node lets a timeout be collected that only `any` knows of, and
 * then it never comes.
 */
export const openDeadline = (ms: number, signal: AbortSignal): { signal: AbortSignal } & Disposable => {
  const over = new AbortController()
  const end = (): void => over.abort(signal.reason)
  const late = () => over.abort(new DOMException(`nothing within ${ms} ms`, 'TimeoutError'))
  const timer = setTimeout(late, ms).unref()
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return {
    signal: over.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    },
  }
}

/** `work`, or the signal's reason as soon as it is aborted; the work itself goes on. Each statement passes here: no promise too many. */
export const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    void work.then(resolve, reject).then(() => signal.removeEventListener('abort', onAbort))
  })
