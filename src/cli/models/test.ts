import type { Environment } from '../../infra/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { ModelTestView } from '../../state/registry/trial.ts'
import { exitCodes } from '../failure.ts'
import { grouped, printable } from '../terminal.ts'
import { type Target, withDesk } from './desk.ts'
import { findModel, vendorPath } from './registry.ts'

/** `mason models test`: one real, small call. Shows what came beside what was read in it. Exit code 1 when it failed. */
export const testModel = (
  alias: string,
  flags: Target & { prompt?: string },
  env: Environment,
  scrubber: Scrubber,
): Promise<number> =>
  withDesk(flags, env, scrubber, async (desk) => {
    const model = await findModel(desk, alias)
    const path = `${vendorPath(model.vendor_id)}/models/${encodeURIComponent(model.id)}/test`
    const body = flags.prompt === undefined ? {} : { prompt: flags.prompt }
    const tried = (await desk.call('POST', path, body)) as ModelTestView
    process.stdout.write(`${scrubber.text(printable(linesOf(alias, tried).join('\n')))}\n`)
    return tried.ok ? exitCodes.done : exitCodes.failed
  })

const linesOf = (alias: string, { ok, raw, parsed, usage, ms, error }: ModelTestView): string[] => [
  'raw',
  shown(raw),
  'parsed',
  shown(parsed),
  usage
    ? `${grouped(usage.prompt_tokens)} + ${grouped(usage.completion_tokens)} tokens (${grouped(usage.cached_tokens)} cached, ${grouped(usage.reasoning_tokens)} reasoning)`
    : 'the vendor told no tokens',
  `${grouped(Math.round(ms))} ms`,
  ...(error
    ? [
        `FAULT  ${alias}: ${error.message} (${error.code})${error.place ? ` at ${error.place}` : ''}`,
        `       -> ${remedies[error.code] ?? 'mend what is said above, then test it again'}`,
      ]
    : [ok ? `ok     ${alias} answers and its answer can be read` : `FAULT  ${alias} failed`]),
]

const shown = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value, null, 2)).replace(/^/gm, '  ')

const remedies: Readonly<Record<string, string>> = {
  model_unauthorized: "give the vendor's key a new secret: POST /admin/v1/vendors/{id}/keys/{id}/rotate",
  model_rate_limited: 'wait, raise the limits of the key, or add another key to the vendor',
  no_model_available: 'mason models list shows the keys; enable one, or add one',
  secret_unreadable: 'set the master key it was stored under, or rotate the key to a new secret',
}
