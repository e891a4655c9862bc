import { HttpError } from '../../../routes/problems.ts'
import { MasonError } from '../../../state/errors.ts'

/** Bytes of request bodies in flight: of all callers of a process, and of one token. */
export type BodyMemory = { processBytes: number; tokenBytes: number }

/** What one request holds of the budget. */
export type BodyReservation = {
  /** Raises it to so many bytes. Throws `too_many_requests` beyond the token's own share, `server_busy` beyond the process's. */
  raiseTo(bytes: number): void
  /** Returns all of it; later raises hold nothing. */
  release(): void
}

/**
 * Counts the bodies that requests hold in memory, from their first byte until the request ends. Beside its own limit a
 * caller may hold as much as is free besides, so that those who send slowly never take all of it.
 */
export const createBodyBudget = ({ processBytes, tokenBytes }: BodyMemory) => {
  let total = 0
  const held = new Map<string, number>()
  return {
    open(caller: string): BodyReservation {
      let own = 0
      let released = false
      const add = (bytes: number): void => {
        own += bytes
        total += bytes
        const share = (held.get(caller) ?? 0) + bytes
        if (share > 0) held.set(caller, share)
        else held.delete(caller)
      }
      return {
        raiseTo(bytes) {
          const more = bytes - own
          if (more <= 0 || released) return
          const share = (held.get(caller) ?? 0) + more
          if (share > tokenBytes) throw createShareError(tokenBytes)
          if (share > processBytes - total) throw createBusyError(processBytes)
          add(more)
        },
        release() {
          released = true
          add(-own)
        },
      }
    },
  }
}

const toMb = (bytes: number): number => Math.floor(bytes / 1024 / 1024)

const createShareError = (bytes: number): MasonError =>
  new MasonError(
    'too_many_requests',
    `the bodies of this token's requests hold all of their ${toMb(bytes)} MB of memory`,
    {
      remedy:
        'wait until some requests have ended, and send large files by POST /v1/files; an operator raises the limit with MASON_TOKEN_BODY_MEMORY_MB',
      detail: { retry_after_s: 2 },
    },
  )

const createBusyError = (bytes: number): HttpError =>
  new HttpError(
    'server_busy',
    `the bodies of requests hold the ${toMb(bytes)} MB of memory that this server has for them`,
    {
      remedy: 'try again; an operator raises the limit with MASON_BODY_MEMORY_MB',
      headers: { 'retry-after': '2' },
    },
  )
