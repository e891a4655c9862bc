import type { Command } from 'commander'
import type { CommandTools } from '../../../features/command-definition.ts'
import { type FeatureSource, loadKind } from '../../../features/definition-files.ts'
import { toSettingsError } from '../../../state/errors.ts'
import { featureSources } from '../../features.generated.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { withAdminClient } from '../models/admin-client.ts'
import { addTargetOptions, type StartCommand } from '../models/commands.ts'
import { formatTable } from '../models/list-models.ts'
import { toPrintable } from '../terminal.ts'

/** Runs a command without settings and mason.config.ts. */
export type StartAlone = (command: () => Promise<number>) => Promise<void>

const createTools = (start: StartCommand, startAlone: StartAlone): CommandTools => ({
  addTargetOptions,
  formatTable,
  withAdmin: (flags, work) =>
    start((env, scrubber) =>
      withAdminClient(flags, env, scrubber, async ({ call, text }) => {
        const write = (content: string, end: string) => process.stdout.write(scrubber.text(content) + end)
        await work({
          call,
          print: (lines) => void write(lines, '\n'),
          printBody: async (...request) =>
            void write(await text(...request), process.stdout.isTTY ? '\n' : ''),
        })
        return exitCodes.done
      }),
    ),
  runProcess: (name) =>
    start(async (env, scrubber) => (await import('./run-process.ts')).runProcess(name, env, scrubber)),
  runAlone: (work) =>
    startAlone(async () => ((await work({ toPrintable, refuse })) ? exitCodes.done : exitCodes.failed)),
})

const refuse = (message: string, remedy: string): never => {
  throw new UsageError(message, remedy)
}

/** Loads the commands of features; the result adds them, and their options of `mason keys rotate`. */
export const loadFeatureCommands = async (sources: readonly FeatureSource[] = featureSources) => {
  const commands = await loadKind(sources, 'command')
  const keys = await loadKind(sources, 'keys')
  return {
    add(program: Command, start: StartCommand, startAlone: StartAlone): void {
      for (const { file, definition } of commands) {
        const { name, description } = definition
        if (program.commands.some((command) => command.name() === name)) {
          const other = commands.find((one) => one.file !== file && one.definition.name === name)
          throw toSettingsError(
            `${file} defines the command "${name}", which ${other?.file ?? 'Mason'} has`,
            'give it another name',
          )
        }
        definition.add(program.command(name).description(description), createTools(start, startAlone))
      }
    },
    addKeyOptions(rotate: Command): Command {
      for (const { definition } of keys) rotate.option(`--${definition.option}`, definition.description)
      return rotate
    },
  }
}

/** See `loadFeatureCommands`. */
export type FeatureCommands = Awaited<ReturnType<typeof loadFeatureCommands>>
