import { type Command, Option } from 'commander'
import type { EffectView } from '../../../state/operations.ts'
import { exitCodes } from '../errors.ts'
import { type AdminTarget, withAdminClient } from '../models/admin-client.ts'
import { addTargetOptions, type StartCommand } from '../models/commands.ts'
import { formatTable } from '../models/list-models.ts'
import { toOneLine } from '../terminal.ts'

type ListFlags = AdminTarget & { status: string; limit: string; json?: boolean }
type ResolveFlags = AdminTarget & { tookPlace: 'yes' | 'no'; response?: string }

/** Adds `mason effects` with its subcommands. */
export const addEffectsCommands = (program: Command, start: StartCommand): void => {
  const effects = program
    .command('effects')
    .description('list side effects, and settle those whose outcome is unknown')
  addTargetOptions(effects.command('list', { isDefault: true }))
    .description('list side effects of all businesses, the latest first')
    .option('--status <status>', 'of this status, or all', 'unknown')
    .option('--limit <count>', 'how many, at most 200', '50')
    .option('--json', 'print one JSON object')
    .action(({ status, limit, json, ...target }: ListFlags) =>
      start((env, scrubber) =>
        withAdminClient(target, env, scrubber, async ({ call }) => {
          const query = { limit, ...(status !== 'all' && { status }) }
          const { data } = (await call('GET', '/admin/v1/effects', undefined, query)) as {
            data: EffectView[]
          }
          const text = json ? JSON.stringify({ effects: data }, null, 2) : formatEffects(data)
          process.stdout.write(`${scrubber.text(text)}\n`)
          return exitCodes.done
        }),
      ),
    )
  addTargetOptions(effects.command('resolve'))
    .description('say whether an unknown side effect took place; its run goes on')
    .argument('<id>', 'the id of the side effect, as the list shows it')
    .addOption(
      new Option('--took-place <answer>', 'no: it is sent again')
        .choices(['yes', 'no'])
        .makeOptionMandatory(),
    )
    .option('--response <text>', 'what the provider answered, for the call')
    .action((id: string, { tookPlace, response, ...target }: ResolveFlags) =>
      start((env, scrubber) =>
        withAdminClient(target, env, scrubber, async ({ call }) => {
          const body = { took_place: tookPlace === 'yes', ...(response !== undefined && { response }) }
          const path = `/admin/v1/effects/${encodeURIComponent(id)}/resolve`
          const { status, run_id } = (await call('POST', path, body)) as EffectView
          process.stdout.write(`${id} is ${status}; run ${run_id} goes on unless it has ended\n`)
          return exitCodes.done
        }),
      ),
    )
}

const formatEffects = (data: readonly EffectView[]): string =>
  data.length === 0
    ? 'no side effects'
    : formatTable([
        ['ID', 'BUSINESS', 'RUN', 'KIND', 'STATUS', 'SENDS', 'SINCE', 'ERROR'],
        ...data.map((one) => [
          one.id,
          one.business_id,
          one.run_id,
          one.kind,
          one.status,
          String(one.sends),
          one.created_at,
          toOneLine(one.error ?? '-'),
        ]),
      ])
