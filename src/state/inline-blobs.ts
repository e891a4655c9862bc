import type { ActionBody, RuntimeState } from './runtime-state.ts'

/** The state with its large results whole again; one whose bytes are gone stays as its reference. */
export const inlineBlobs = async (
  state: RuntimeState,
  read: (sha256: string) => Promise<Uint8Array | null>,
): Promise<RuntimeState> => {
  const history = []
  for (const turn of state.action_history) {
    const actions = []
    for (const action of turn) {
      const { blob } = action.result
      const bytes = typeof blob === 'string' ? await read(blob) : null
      const result = bytes && parseBlobResult(Buffer.from(bytes).toString('utf8'))
      actions.push(result ? { ...action, result } : action)
    }
    history.push(actions)
  }
  return { ...state, action_history: history }
}

/** A result as it was stored; null for bytes that are none, such as a file that a tool's own data names. */
export const parseBlobResult = (json: string): ActionBody['result'] | null => {
  try {
    const result: unknown = JSON.parse(json)
    return typeof result === 'object' && result !== null && !Array.isArray(result)
      ? (result as ActionBody['result'])
      : null
  } catch {
    return null
  }
}
