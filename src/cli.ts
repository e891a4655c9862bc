#!/usr/bin/env node
import { Console } from 'node:console'
import { Command, CommanderError, Option } from 'commander'
import { runCommand } from './app/cli/command-runner.ts'
import type { ConsoleFlags } from './app/cli/console/open-console.ts'
import type { DevFlags } from './app/cli/dev.ts'
import type { DoctorFlags } from './app/cli/doctor/doctor.ts'
import { addEffectsCommands } from './app/cli/effects/commands.ts'
import { exitCodes } from './app/cli/errors.ts'
import {
  type FeatureCommands,
  loadFeatureCommands,
  type StartAlone,
} from './app/cli/features/feature-commands.ts'
import {
  addModelsCommands,
  addTargetOptions,
  collectOption,
  type StartCommand,
} from './app/cli/models/commands.ts'
import type { CreateTokenFlags } from './app/cli/models/create-token.ts'
import type { RotateFlags } from './app/cli/rotate-keys.ts'
import type { RunFlags } from './app/cli/run.ts'
import { addRunsCommands } from './app/cli/runs/commands.ts'
import type { ServeFlags, WorkerFlags } from './app/cli/serve.ts'
import { readMasonVersion } from './infra/lib/package-path.ts'
import { toErrorMessage } from './state/errors.ts'

/** The commands of CONTRACT section 1. Each is loaded when it is called, so that --help is fast. */

const settingsHelp = `
Settings come from the environment and from .env in this folder. Without DATABASE_URL and REDIS_URL everything is
embedded in DATA_DIR (.mason). Without OPENAI_API_KEY and OPENAI_BASE_URL a built-in offline model answers.
"mason doctor" checks all settings.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 input required, 130 cancelled`

const migrateOption = ['--migrate', 'apply missing migrations to the database server first'] as const

const createProgram = (start: StartCommand, startAlone: StartAlone, features: FeatureCommands): Command => {
  const program = new Command('mason')
    .description('A durable agent runtime: workers execute runs as one graph over one state.')
    .version(readMasonVersion())
    .exitOverride()
    .showHelpAfterError('(--help lists commands and options)')
    .addHelpText('after', settingsHelp)
  program
    .command('serve')
    .description('HTTP API and worker in one process')
    .option('--port <port>', 'port to listen on (PORT, default 8080)')
    .option('--host <host>', 'address to listen on (HOST, default 127.0.0.1)')
    .addOption(
      new Option('--role <role>', 'parts that this process runs')
        .choices(['all', 'api', 'worker'])
        .default('all'),
    )
    .option(...migrateOption)
    .action((flags: ServeFlags) =>
      start(async (...parts) => (await import('./app/cli/serve.ts')).runServer(flags, ...parts)),
    )
  program
    .command('worker')
    .description('one worker process (needs DATABASE_URL and REDIS_URL)')
    .option(...migrateOption)
    .action((flags: WorkerFlags) =>
      start(async (...parts) => (await import('./app/cli/serve.ts')).runWorker(flags, ...parts)),
    )
  program
    .command('memory-worker')
    .description(
      'only learns from ended runs and embeds memories; for MASON_LEARNING=off (needs DATABASE_URL)',
    )
    .action(() => start(async (...parts) => (await import('./app/cli/serve.ts')).runMemoryWorker(...parts)))
  program
    .command('run')
    .description('submit a run and follow it (Ctrl-C cancels it)')
    .argument('<prompt>', 'the task')
    .option('--session <id>', 'session to continue')
    .option('--user <id>', 'user to act for (default "local")')
    .option('--file <path>', 'file to attach (repeatable)', collectOption)
    .option('--url <url>', 'server to submit to (MASON_URL); without it, this process executes the run')
    .option('--token <token>', 'token for that server (MASON_TOKEN)')
    .option('--json', 'print one JSON object per event and nothing else')
    .action((prompt: string, flags: RunFlags) =>
      start(async (...parts) =>
        (await import('./app/cli/run.ts')).submitAndFollowRun(prompt, flags, ...parts),
      ),
    )
  program
    .command('migrate')
    .description('apply missing database migrations and create the logins of API, workers and executor')
    .action(() => start(async (env) => (await import('./app/cli/migrate.ts')).migrateDatabase(env)))
  features
    .addKeyOptions(
      program.command('keys').description('manage the keys that encrypt stored secrets').command('rotate'),
    )
    .description('encrypt stored vendor keys under a new master key, without downtime')
    .action((flags: RotateFlags) =>
      start(async (env, scrubber) =>
        (await import('./app/cli/rotate-keys.ts')).rotateKeys(flags, env, scrubber),
      ),
    )
  program
    .command('queue')
    .description('manage the queue prefix in Redis')
    .command('claim')
    .description('take the queue prefix over for this database, which replaces the one it belongs to')
    .action(() => start(async (env) => (await import('./app/cli/claim-queue.ts')).claimQueue(env)))
  addTargetOptions(program.command('tokens').description('manage API tokens of businesses').command('create'))
    .description('create a token and print it, once')
    .option('--business <id>', 'business that the token acts for', 'default')
    .option('--name <text>', 'what the token is for, such as the product that uses it')
    .option('--operator <name>', 'an admin token of this person, in place of one of a business')
    .option(
      '--role <role>',
      'submit, read, consent, delete, agent or admin (repeatable; default submit and read)',
      collectOption,
    )
    .action((flags: CreateTokenFlags) =>
      start(async (env, scrubber) =>
        (await import('./app/cli/models/create-token.ts')).createToken(flags, env, scrubber),
      ),
    )
  program
    .command('console')
    .description('open the console in a browser, signed in')
    .option(
      '--url <url>',
      'server whose console it is (MASON_URL); without it, the one that runs on DATA_DIR',
    )
    .option('--token <token>', 'token to sign in with (MASON_TOKEN)')
    .option('--no-open', 'print the address only')
    .action((flags: ConsoleFlags) =>
      start(async (env, scrubber) =>
        (await import('./app/cli/console/open-console.ts')).openConsole(flags, env, scrubber),
      ),
    )
  addModelsCommands(program, start)
  addRunsCommands(program, start)
  addEffectsCommands(program, start)
  features.add(program, start, startAlone)
  program
    .command('tools')
    .description('list the nodes and tools, with those of mason.config.ts and MASON_TOOLS')
    .option('--json', 'print one JSON object a line')
    .action((flags: { json?: boolean }) =>
      start(async (env) => (await import('./app/cli/tools.ts')).listTools(flags, env)),
    )
  program
    .command('features')
    .description('list the features with their tables, routes, loops, metrics and commands')
    .option('--json', 'print one JSON object a line')
    .action((flags: { json?: boolean }) =>
      start(async (env) => (await import('./app/cli/features/list-features.ts')).printFeatures(flags, env)),
    )
  program
    .command('init')
    .description('write a small project: a tool, its test, settings and a compose file')
    .argument('[dir]', 'folder to write to', '.')
    .action((folder: string) =>
      startAlone(async () => (await import('./app/cli/init.ts')).initProject(folder)),
    )
  program
    .command('dev')
    .description('HTTP API and worker, started again at each change of a file')
    .option('--port <port>', 'port to listen on (PORT, default 8080)')
    .option('--host <host>', 'address to listen on (HOST, default 127.0.0.1)')
    .action((flags: DevFlags) => startAlone(async () => (await import('./app/cli/dev.ts')).runDev(flags)))
  program
    .command('doctor')
    .description('check settings, database, queue, models and disk, and say how to fix problems')
    .addOption(
      new Option('--role <role>', 'kind of process to check the settings for')
        .choices(['serve', 'api', 'worker', 'payments'])
        .default('serve'),
    )
    .action((flags: DoctorFlags) =>
      start(async (env) => (await import('./app/cli/doctor/doctor.ts')).runDoctor(flags, env)),
    )
  return program
}

await runCommand(async (env, scrubber) => {
  let code: number = exitCodes.done
  const start: StartCommand = async (command) => {
    const { loadProject } = await import('./project/load-project.ts')
    const { environment, setup } = await loadProject(env())
    code = await command(environment, scrubber, setup)
  }
  const startAlone: StartAlone = async (command) => {
    code = await command()
  }
  const program = createProgram(start, startAlone, await loadFeatureCommands())
  // the commands of a product are loaded for the list of all, and for a name that is none of the others
  const [name = 'help'] = process.argv.slice(2)
  const isBuiltIn = program.commands.some((command) => command.name() === name)
  // what a file of a product prints must not be among the objects of --json
  if (isBuiltIn && process.argv.includes('--json')) globalThis.console = new Console(process.stderr)
  const listsAll = ['help', '--help', '-h'].includes(name)
  if (listsAll || !(name.startsWith('-') || isBuiltIn))
    await start(async (environment) => {
      const { loadOwnCommands } = await import('./app/cli/features/list-features.ts')
      const own = await loadOwnCommands(environment)
      own.add(program, start, startAlone)
      return exitCodes.done
    }).catch((error: unknown) => {
      if (!listsAll) throw error
      program.addHelpText('after', `\nCommands of features are not listed: ${toErrorMessage(error)}`)
    })
  try {
    await program.parseAsync()
    return code
  } catch (error) {
    // commander has already printed the error or the help
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    throw error
  }
})
