const maxDepth = 8

/**
 * The innermost error, which for `fetch failed` is the one that says something. Connecting to several addresses fails with an error
 * for each and no message of its own: theirs are joined.
 */
export const findRootCause = (error: unknown, depth = 0): { code?: string; message: string } => {
  if (!(error instanceof Error)) return { message: String(error) }
  if (error.cause !== undefined && depth < maxDepth) return findRootCause(error.cause, depth + 1)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const each =
    error instanceof AggregateError && depth < maxDepth
      ? error.errors.map((one) => findRootCause(one, depth + 1).message).join('; ')
      : ''
  const message = error.message || each || code || error.name
  return code === undefined ? { message } : { code, message }
}
