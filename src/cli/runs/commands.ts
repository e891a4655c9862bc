import type { Command } from 'commander'
import { addTargetOptions, type StartCommand } from '../models/commands.ts'
import type { ListRunsFlags, RunTarget } from './manage-runs.ts'

type Module = typeof import('./manage-runs.ts')
type RunsCommand = Parameters<Module['runRunsCommand']>[0]

/** Adds `mason runs` with its subcommands. */
export const addRunsCommands = (program: Command, start: StartCommand): void => {
  const runs = program.command('runs').description('list, show, answer, cancel and retry runs')
  const add = (usage: string, description: string): Command =>
    addTargetOptions(runs.command(usage))
      .description(description)
      .option('--business <id>', 'business of the runs (with an admin token; absent: default)')
      .option('--json', 'print JSON')
  const run = (flags: RunTarget, choose: (module: Module) => RunsCommand): Promise<void> =>
    start(async (env, scrubber) => {
      const module = await import('./manage-runs.ts')
      return module.runRunsCommand(choose(module), flags, env, scrubber)
    })

  add('list', 'list runs, the latest first')
    .option('--status <status>', 'only queued, running, input_required, completed, failed or cancelled ones')
    .option('--user <id>', 'only of this user')
    .option('--session <id>', 'only of this session')
    .option('--limit <count>', 'how many, at most 200', '50')
    .action((flags: ListRunsFlags) => run(flags, ({ printRuns }) => printRuns(flags)))
  add('show <run>', 'show a run with its answer, error or question').action((id: string, flags: RunTarget) =>
    run(flags, ({ printRun }) => printRun(id)),
  )
  add('logs <run>', 'show the actions of a run').action((id: string, flags: RunTarget) =>
    run(flags, ({ printActions }) => printActions(id)),
  )
  add('answer <run> <answer>', 'answer the question that a run waits for').action(
    (id: string, answer: string, flags: RunTarget) => run(flags, ({ sendAnswer }) => sendAnswer(id, answer)),
  )
  add('cancel <run>', 'cancel a run')
    .option('--reason <text>', 'why')
    .action((id: string, flags: RunTarget & { reason?: string }) =>
      run(flags, ({ sendCancel }) => sendCancel(id, flags.reason)),
    )
  add('retry <run>', "submit a failed run again, as its session's next turn").action(
    (id: string, flags: RunTarget) => run(flags, ({ sendRetry }) => sendRetry(id)),
  )
}
