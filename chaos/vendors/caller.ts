import { fileURLToPath } from 'node:url'
import type { Config } from '../../src/infra/config/config.ts'
import type { Backend } from '../../test/support/backend.ts'
import { type Child, startChild } from '../child.ts'

/** A process that asks one model in some lanes until it gets the stop message; a lane whose call fails stops by itself. */
export type CallerTask = { config: Config; role: string; model: string; lanes: number }

export type CallerMessage =
  | { event: 'ready' }
  /** A lane's last call failed so; limited: all that could answer it are at a limit. */
  | { event: 'refused'; text: string; isLimited: boolean }

const script = fileURLToPath(new URL('./caller-process.ts', import.meta.url))

/** The roles are `caller-1` and so on: by them the vendor sees which process asks. */
export const startCallers = (
  { config }: Pick<Backend, 'config'>,
  { model, lanes, count }: { model: string; lanes: number; count: number },
): Child<CallerMessage>[] =>
  Array.from({ length: count }, (_, at) => {
    const task: CallerTask = { config, role: `caller-${at + 1}`, model, lanes }
    return startChild<CallerMessage>(script, task)
  })
