import type { Command } from 'commander'
import type { Environment } from '../../infra/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { AddFlags } from './add.ts'
import type { Target } from './desk.ts'

type Start = (command: (env: Environment, scrubber: Scrubber) => Promise<number>) => Promise<void>

const collect = (role: string, before: string[] = []): string[] => [...before, role]

/** `mason models`: the registry of vendors, keys, endpoints and models. */
export const addModelsCommands = (program: Command, start: Start): void => {
  const models = program.command('models').description('the models of the registry: add, list and test them')
  const withTarget = (command: Command): Command =>
    command
      .option('--url <url>', 'a running Mason (MASON_URL); without one the registry of the settings here')
      .option('--token <token>', 'its admin token (MASON_TOKEN)')
  withTarget(models.command('add'))
    .description('add a model with its vendor, key and endpoint; what is there already is used')
    .requiredOption('--vendor <name>', 'who serves it')
    .requiredOption('--base-url <url>', 'up to where the paths of its API begin, such as https://host/v1')
    .requiredOption('--name <alias>', 'the alias it is called by here')
    .option('--upstream <name>', 'what the vendor calls it (the alias)')
    .option('--category <name>', 'what it is for', 'text')
    .option('--format <name>', 'the response format, where it does not speak the protocol of OpenAI')
    .option(
      '--key-env <name>',
      'the variable with the key; without it the key is asked for, or read from stdin',
    )
    .option('--no-key', 'the vendor wants none')
    .option('--role <role>', 'route this role to it, after those there are; may be repeated', collect)
    .action((flags: AddFlags) =>
      start(async (env, scrubber) => (await import('./add.ts')).addModel(flags, env, scrubber)),
    )
  withTarget(models.command('list'))
    .description('aliases, vendors, categories, routes and the health of keys')
    .option('--json', 'one JSON object')
    .action((flags: Target & { json?: boolean }) =>
      start(async (env, scrubber) => (await import('./list.ts')).listModels(flags, env, scrubber)),
    )
  withTarget(models.command('test'))
    .description('make one real, small call and show the raw answer beside the parsed one')
    .argument('<alias>', 'the model')
    .option('--prompt <text>', 'what it is asked')
    .action((alias: string, flags: Target & { prompt?: string }) =>
      start(async (env, scrubber) => (await import('./test.ts')).testModel(alias, flags, env, scrubber)),
    )
}
