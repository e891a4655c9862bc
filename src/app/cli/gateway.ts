import type { Config, Environment } from '../../infra/config/config.ts'
import { findServer } from '../../infra/database/folder-lock.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import type { RunRequest } from '../../state/run-request.ts'
import type { RunEvent } from '../../state/run-view.ts'
import type { Json } from '../../state/runtime-state.ts'
import { readConfig } from '../read-config.ts'
import { addAdminToken } from './admin-token.ts'

/** A submitted run that can be followed, answered and cancelled, in this process or over HTTP. */
export type RunHandle = {
  run: { id: string; session_id: string; turn: number }
  /** All events from the first action on, each exactly once; ends after `done`. */
  events(signal: AbortSignal): AsyncIterable<RunEvent>
  /** Does nothing to a run that has already ended. */
  cancel(reason: string): Promise<void>
  /** Throws `invalid_request` when the answer does not match the question's schema; the caller may ask again. */
  answer(requestId: string, answer: Json): Promise<void>
}

/** Waits until a run is cancelled; one that has already ended is left as it is. */
export const ignoreEnded = async (cancelling: Promise<unknown>): Promise<void> => {
  await cancelling.catch((error: unknown) => {
    if (!isMasonError(error, 'run_ended')) throw error
  })
}

/** A place to submit runs to: a runtime in this process or a server. */
export type RunGateway = {
  submit(request: RunRequest): Promise<RunHandle>
  /** Whether the built-in offline model answers; null where that cannot be known here. */
  offline: boolean | null
  /** How to answer a question of this run from elsewhere, as a line for people. */
  formatAnswerCommand(runId: string, requestId: string): string
  /** The command that continues the session. */
  formatContinueCommand(sessionId: string, userId: string): string
  close(): Promise<void>
}

/** The configuration of a command that a server (`url`) or a runtime in this process serves; by default it logs warnings. */
export const readTargetConfig = (
  flags: { url?: string; token?: string },
  env: Environment,
  local: 'run' | 'models' = 'run',
): Config => {
  const merged = {
    ...env,
    ...(flags.url !== undefined && { MASON_URL: flags.url }),
    ...(flags.token !== undefined && { MASON_TOKEN: flags.token }),
    LOG_LEVEL: env.LOG_LEVEL || 'warn',
  }
  return readConfig(merged, { role: merged.MASON_URL ? 'client' : local })
}

/** The server that the settings name, or the one that is running on the data folder, with its token. */
export const findTarget = async (config: Config): Promise<Config['client']> => {
  if (config.client.url !== null || config.database.kind !== 'embedded') return config.client
  const url = await findServer(config.database.dataDir)
  if (url === null) return config.client
  return { url, token: (await addAdminToken(config)).config.adminToken }
}

/** Opens a runtime; a locked data folder gets a remedy for this command, as `mason serve` often holds the lock. */
export const withLockRemedy = <Value>(opening: Promise<Value>, remedy: string): Promise<Value> =>
  opening.catch((error: unknown) => {
    if (!isMasonError(error, 'data_dir_locked')) throw error
    throw new MasonError('data_dir_locked', error.message, { remedy, detail: error.detail, cause: error })
  })
