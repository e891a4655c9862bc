/** `compute` with its results kept while their first argument lives: it runs once for each, whatever the others are. */
export const memoizeByObject = <Key extends object, Rest extends unknown[], Value>(
  compute: (key: Key, ...rest: Rest) => Value,
): ((key: Key, ...rest: Rest) => Value) => {
  const results = new WeakMap<Key, { value: Value }>()
  return (key, ...rest) => {
    const known = results.get(key)
    if (known) return known.value
    const value = compute(key, ...rest)
    results.set(key, { value })
    return value
  }
}
