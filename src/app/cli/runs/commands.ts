import type { Command } from 'commander'
import { addTargetOptions, type StartCommand } from '../models/commands.ts'
import type { ListRunsFlags, RunsCommand, RunTarget } from './manage-runs.ts'

/** Adds `mason runs` with its subcommands. */
export const addRunsCommands = (program: Command, start: StartCommand): void => {
  const runs = program.command('runs').description('list, show, answer, cancel and retry runs')
  const add = (usage: string, description: string): Command =>
    addTargetOptions(runs.command(usage))
      .description(description)
      .option('--business <id>', 'business of the runs (with an admin token; absent: default)')
      .option('--json', 'print JSON')
  const load = () => import('./manage-runs.ts')
  const run = (flags: RunTarget, choose: () => Promise<RunsCommand>): Promise<void> =>
    start(async (env, scrubber) => (await load()).runRunsCommand(await choose(), flags, env, scrubber))

  add('list', 'list runs, the latest first')
    .option('--status <status>', 'only queued, running, input_required, completed, failed or cancelled ones')
    .option('--user <id>', 'only of this user')
    .option('--session <id>', 'only of this session')
    .option('--limit <count>', 'how many, at most 200', '50')
    .action((flags: ListRunsFlags) => run(flags, async () => (await load()).printRuns(flags)))
  add('show <run>', 'show a run with its answer, error or question').action((id: string, flags: RunTarget) =>
    run(flags, async () => (await load()).printRun(id)),
  )
  add('logs <run>', 'show the actions of a run').action((id: string, flags: RunTarget) =>
    run(flags, async () => (await load()).printActions(id)),
  )
  add(
    'answer <run> [answer]',
    'answer the question that a run waits for (a secret one: from a hidden prompt, or stdin)',
  ).action((id: string, answer: string | undefined, flags: RunTarget) =>
    run(flags, async () => (await load()).sendAnswer(id, answer)),
  )
  add('cancel <run>', 'cancel a run')
    .option('--reason <text>', 'why')
    .action((id: string, flags: RunTarget & { reason?: string }) =>
      run(flags, async () => (await load()).sendCancel(id, flags.reason)),
    )
  add('retry <run>', "submit a failed run again, as its session's next turn").action(
    (id: string, flags: RunTarget) => run(flags, async () => (await load()).sendRetry(id)),
  )
}
