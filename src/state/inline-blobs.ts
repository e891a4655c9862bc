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
      actions.push(bytes ? { ...action, result: resultIn(bytes) } : action)
    }
    history.push(actions)
  }
  return { ...state, action_history: history }
}

const resultIn = (bytes: Uint8Array): ActionBody['result'] => JSON.parse(Buffer.from(bytes).toString('utf8'))
