/** The id in `memory` of a recalled turn of another session. */
export const toSessionMemoryId = (sessionId: string, turn: number): string => `session ${sessionId} ${turn}`

/** The session and the turn that such an id names; null: it is the id of a memory. */
export const parseSessionMemoryId = (id: string): { session_id: string; turn: number } | null => {
  const [, session_id = '', turn] = /^session (\S+) (\d+)$/.exec(id) ?? []
  return turn === undefined ? null : { session_id, turn: Number(turn) }
}
