#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import type { DoctorFlags } from './cli/doctor.ts'
import { exitCodes } from './cli/failure.ts'
import { addModelsCommands } from './cli/models/commands.ts'
import type { RunFlags } from './cli/run.ts'
import type { ServeFlags } from './cli/serve.ts'
import { runCommand } from './cli/shell.ts'
import type { Environment } from './infra/config.ts'
import { packagePath } from './infra/package-path.ts'
import type { Scrubber } from './infra/secrets/scrubber.ts'

/** The commands of CONTRACT section 1. Each is loaded when it is called, so that --help is quick. */

type Start = (command: (env: Environment, scrubber: Scrubber) => Promise<number>) => Promise<void>

const collect = (path: string, before: string[] = []): string[] => [...before, path]

const settingsHelp = `
Settings come from the environment and from .env in this folder. Without DATABASE_URL and REDIS_URL everything is
embedded in DATA_DIR (.mason), and without OPENAI_API_KEY and OPENAI_BASE_URL a built-in offline model answers.
mason doctor checks them all.

Exit codes: 0 done, 1 failed, 2 usage or settings, 3 input required, 130 cancelled`

const createProgram = (start: Start): Command => {
  const { version } = JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string }
  const program = new Command('mason')
    .description('A durable agent runtime: jobs come from a queue and run through one graph over one state.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText('after', settingsHelp)
  program
    .command('serve')
    .description('HTTP API and worker in one process')
    .option('--port <port>', 'where to listen (PORT, 8080)')
    .option('--host <host>', 'on which address to listen (HOST, 127.0.0.1)')
    .addOption(
      new Option('--role <role>', 'what this process does').choices(['all', 'api', 'worker']).default('all'),
    )
    .action((flags: ServeFlags) =>
      start(async (env, scrubber) => (await import('./cli/serve.ts')).serve(flags, env, scrubber)),
    )
  program
    .command('worker')
    .description('one worker process; needs DATABASE_URL and REDIS_URL')
    .action(() => start(async (env, scrubber) => (await import('./cli/worker.ts')).work(env, scrubber)))
  program
    .command('run')
    .description('submit a run and follow it; Ctrl-C cancels it')
    .argument('<prompt>', 'what is to be done')
    .option('--session <id>', 'go on with this session')
    .option('--user <id>', 'on behalf of this user (local)')
    .option('--file <path>', 'give it a file; may be repeated', collect)
    .option('--url <url>', 'a running Mason (MASON_URL); without one the run is done right here')
    .option('--token <token>', 'its token (MASON_TOKEN)')
    .option('--json', 'one JSON object per event and nothing else')
    .action((prompt: string, flags: RunFlags) =>
      start(async (env, scrubber) => (await import('./cli/run.ts')).run(prompt, flags, env, scrubber)),
    )
  program
    .command('migrate')
    .description('apply the migrations that are missing')
    .action(() => start(async (env) => (await import('./cli/migrate.ts')).migrate(env)))
  program
    .command('keys')
    .description('the keys under which secrets are stored')
    .command('rotate')
    .description('put the stored keys of vendors under a new master key, while everything runs')
    .action(() => start(async (env, scrubber) => (await import('./cli/keys.ts')).rotateKeys(env, scrubber)))
  addModelsCommands(program, start)
  program
    .command('doctor')
    .description('check settings, database, queue, models and disk, and say how to mend what is wrong')
    .addOption(
      new Option('--role <role>', 'what the process is going to be')
        .choices(['serve', 'api', 'worker'])
        .default('serve'),
    )
    .action((flags: DoctorFlags) =>
      start(async (env) => (await import('./cli/doctor.ts')).doctor(flags, env)),
    )
  return program
}

await runCommand(async (env, scrubber) => {
  let code: number = exitCodes.done
  const program = createProgram(async (command) => {
    code = await command(env(), scrubber)
  })
  try {
    await program.parseAsync()
    return code
  } catch (error) {
    // commander has said what is wrong, or has shown what was asked for
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    throw error
  }
})
