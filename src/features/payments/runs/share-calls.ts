/** One call at a time for all who ask meanwhile: they get the same result, or its error. */
export const shareCalls = <Result>(call: () => Promise<Result>): (() => Promise<Result>) => {
  let underWay: Promise<Result> | null = null
  return () => {
    underWay ??= call().finally(() => {
      underWay = null
    })
    return underWay
  }
}
