import type { Command } from 'commander'
import type { CommandTools } from '../../../features/definitions.ts'
import { loadKind } from '../../../features/load-features.ts'
import { featureSources } from '../../features.generated.ts'
import { exitCodes } from '../errors.ts'
import { withAdminClient } from '../models/admin-client.ts'
import { addTargetOptions, type StartCommand } from '../models/commands.ts'
import { formatTable } from '../models/list-models.ts'

const createTools = (start: StartCommand): CommandTools => ({
  addTargetOptions,
  formatTable,
  withAdmin: (flags, work) =>
    start((env, scrubber) =>
      withAdminClient(flags, env, scrubber, async ({ call }) => {
        await work({ call, print: (text) => process.stdout.write(`${scrubber.text(text)}\n`) })
        return exitCodes.done
      }),
    ),
})

/** Loads the commands of all features; the result adds them. */
export const loadFeatureCommands = async (): Promise<(program: Command, start: StartCommand) => void> => {
  const commands = await loadKind(featureSources, 'command')
  return (program, start) => {
    for (const { definition } of commands) {
      const { name, description } = definition
      definition.add(program.command(name).description(description), createTools(start))
    }
  }
}
