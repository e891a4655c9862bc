import type { Command } from 'commander'
import type { DeliveryView } from '../../../accounts/webhook-schemas.ts'
import { exitCodes } from '../errors.ts'
import { type AdminTarget, withAdminClient } from '../models/admin-client.ts'
import type { StartCommand } from '../models/commands.ts'
import { formatTable } from '../models/list-models.ts'

type ListFlags = AdminTarget & {
  business?: string
  run?: string
  status?: string
  limit: string
  json?: boolean
}

/** Adds `mason webhooks` with its subcommands. */
export const addWebhooksCommands = (program: Command, start: StartCommand): void => {
  const webhooks = program.command('webhooks').description('list webhooks and send them again')
  const withTarget = (command: Command): Command =>
    command
      .option('--url <url>', 'server to manage (MASON_URL); without it, the database of the local settings')
      .option('--token <token>', 'admin token of that server (MASON_TOKEN)')
  withTarget(webhooks.command('list'))
    .description('list webhooks with what became of them, the latest first')
    .option('--business <id>', 'only of this business')
    .option('--run <id>', 'only of this run')
    .option('--status <status>', 'only pending, sending, delivered or dead ones')
    .option('--limit <count>', 'how many, at most 200', '50')
    .option('--json', 'print one JSON object')
    .action((flags: ListFlags) =>
      start((env, scrubber) =>
        withAdminClient(flags, env, scrubber, async ({ call }) => {
          const { business, run, status, limit } = flags
          const { data } = (await call('GET', '/admin/v1/webhooks', undefined, {
            limit,
            status,
            business_id: business,
            run_id: run,
          })) as { data: DeliveryView[] }
          const text = flags.json ? JSON.stringify({ webhooks: data }, null, 2) : formatWebhooks(data)
          process.stdout.write(`${scrubber.text(text)}\n`)
          return exitCodes.done
        }),
      ),
    )
  withTarget(webhooks.command('replay'))
    .description('send webhooks again under the same ids, delivered or not')
    .argument('<id...>', 'ids of webhooks, as the list shows them')
    .action((ids: string[], flags: AdminTarget) =>
      start((env, scrubber) =>
        withAdminClient(flags, env, scrubber, async ({ call }) => {
          for (const id of ids) {
            await call('POST', `/admin/v1/webhooks/${encodeURIComponent(id)}/replay`, {})
            process.stdout.write(`${id} will be sent again\n`)
          }
          return exitCodes.done
        }),
      ),
    )
}

const formatWebhooks = (data: readonly DeliveryView[]): string =>
  data.length === 0
    ? 'no webhooks'
    : formatTable([
        ['ID', 'TYPE', 'RUN', 'STATUS', 'TRIES', 'NEXT', 'URL', 'LAST ERROR'],
        ...data.map((one) => [
          one.id,
          one.type,
          one.run_id ?? '-',
          one.status,
          String(one.attempts),
          one.due_at ?? '-',
          one.url,
          one.last_error ?? '-',
        ]),
      ])
