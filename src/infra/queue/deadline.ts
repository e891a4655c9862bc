/** Whether `work` settled, either way, within `ms`. Never rejects, and leaves no timer behind. */
export async function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const settled = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The value of `work`, or the error made by `onLate` when it takes longer than `ms`; `work` itself goes on. */
export async function orLate<Value>(work: Promise<Value>, ms: number, onLate: () => Error): Promise<Value> {
  if (await settlesWithin(work, ms)) return work
  throw onLate()
}
