/** A promise that the test settles. */
export const deferred = <Value = void>(): { promise: Promise<Value>; resolve(value: Value): void } => {
  let settle: (value: Value) => void = () => {}
  const promise = new Promise<Value>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (value) => settle(value) }
}
