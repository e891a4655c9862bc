import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import type { ModelTestView } from '../../../models/schemas/model-probe.ts'
import { exitCodes } from '../errors.ts'
import { formatCount, toPrintable } from '../terminal.ts'
import { type AdminTarget, findRegistryModel, toVendorPath, withAdminClient } from './admin-client.ts'

/** `mason models test`: one small real request. Shows the raw and the parsed response. Exit code 1 when it failed. */
export const testModel = (
  alias: string,
  flags: AdminTarget & { prompt?: string },
  env: Environment,
  scrubber: Scrubber,
): Promise<number> =>
  withAdminClient(flags, env, scrubber, async (client) => {
    const model = await findRegistryModel(client, alias)
    const path = `${toVendorPath(model.vendor_id)}/models/${encodeURIComponent(model.id)}/test`
    const body = flags.prompt === undefined ? {} : { prompt: flags.prompt }
    const result = (await client.call('POST', path, body)) as ModelTestView
    process.stdout.write(`${scrubber.text(toPrintable(formatModelTest(alias, result).join('\n')))}\n`)
    return result.ok ? exitCodes.done : exitCodes.failed
  })

const formatModelTest = (alias: string, { ok, raw, parsed, usage, ms, error }: ModelTestView): string[] => [
  'raw',
  formatValue(raw),
  'parsed',
  formatValue(parsed),
  usage
    ? `${formatCount(usage.prompt_tokens)} + ${formatCount(usage.completion_tokens)} tokens (${formatCount(usage.cached_tokens)} cached, ${formatCount(usage.reasoning_tokens)} reasoning)`
    : 'the vendor reported no token usage',
  `${formatCount(Math.round(ms))} ms`,
  ...(error
    ? [
        `ERROR  ${alias}: ${error.message} (${error.code})${error.place ? ` at ${error.place}` : ''}`,
        `       -> ${remedies[error.code] ?? 'fix the error above, then test again'}`,
      ]
    : [ok ? `ok     ${alias} works: the response was parsed` : `ERROR  ${alias} failed`]),
]

const formatValue = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value, null, 2)).replace(/^/gm, '  ')

const remedies: Readonly<Record<string, string>> = {
  model_unauthorized: "give the vendor's key a new secret: POST /admin/v1/vendors/{id}/keys/{id}/rotate",
  model_rate_limited: 'wait, raise the limits of the key, or add another key to the vendor',
  no_model_available: 'mason models list shows the keys; enable one, or add one',
  secret_unreadable: 'set the master key that encrypted it, or rotate the key to a new secret',
}
