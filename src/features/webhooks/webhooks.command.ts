import { type CommandTools, defineCommand } from '../command-definition.ts'
import type { DeliveryView } from './webhook-schemas.ts'

type Target = { url?: string; token?: string }
type ListFlags = Target & { business?: string; run?: string; status?: string; limit: string; json?: boolean }

export default defineCommand({
  name: 'webhooks',
  description: 'list webhooks and send them again',
  add(webhooks, { addTargetOptions, withAdmin, formatTable }) {
    addTargetOptions(webhooks.command('list'))
      .description('list webhooks with what became of them, the latest first')
      .option('--business <id>', 'only of this business')
      .option('--run <id>', 'only of this run')
      .option('--status <status>', 'only pending, sending, delivered or dead ones')
      .option('--limit <count>', 'how many, at most 200', '50')
      .option('--json', 'print one JSON object')
      .action((flags: ListFlags) =>
        withAdmin(flags, async ({ call, print }) => {
          const { business, run, status, limit } = flags
          const { data } = (await call('GET', '/admin/v1/webhooks', undefined, {
            limit,
            status,
            business_id: business,
            run_id: run,
          })) as { data: DeliveryView[] }
          print(flags.json ? JSON.stringify({ webhooks: data }, null, 2) : formatWebhooks(data, formatTable))
        }),
      )
    addTargetOptions(webhooks.command('replay'))
      .description('send webhooks again under the same ids, delivered or not')
      .argument('<id...>', 'ids of webhooks, as the list shows them')
      .action((ids: string[], flags: Target) =>
        withAdmin(flags, async ({ call, print }) => {
          for (const id of ids) {
            await call('POST', `/admin/v1/webhooks/${encodeURIComponent(id)}/replay`, {})
            print(`${id} will be sent again`)
          }
        }),
      )
  },
})

const formatWebhooks = (data: readonly DeliveryView[], formatTable: CommandTools['formatTable']): string =>
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
