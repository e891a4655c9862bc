import type { Command } from 'commander'
import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import type { Project } from '../../../project/load-project.ts'
import type { AddModelFlags } from './add-model.ts'
import type { AdminTarget } from './admin-client.ts'

/** Runs a command with the settings, the scrubber of its output, and what mason.config.ts opens. */
export type StartCommand = (
  command: (env: Environment, scrubber: Scrubber, setup: Project['setup']) => Promise<number>,
) => Promise<void>

/** Collects the values of an option that can be repeated. */
export const collectOption = (value: string, before: string[] = []): string[] => [...before, value]

/** Adds the options that choose a server, or without them the database of the local settings. */
export const addTargetOptions = (command: Command): Command =>
  command
    .option('--url <url>', 'server to manage (MASON_URL); without it, the database of the local settings')
    .option('--token <token>', 'admin token of that server (MASON_TOKEN)')

/** Adds `mason models` with its subcommands for the model registry. */
export const addModelsCommands = (program: Command, start: StartCommand): void => {
  const models = program.command('models').description('add, list and test models of the registry')
  addTargetOptions(models.command('add'))
    .description('add a model with its vendor, key and endpoint, reusing existing ones')
    .requiredOption('--vendor <name>', 'vendor that serves the model')
    .requiredOption('--base-url <url>', 'base URL of its API, such as https://host/v1')
    .requiredOption('--name <alias>', 'alias of the model in Mason')
    .option('--upstream <name>', "the vendor's name for the model (default: the alias)")
    .option('--category <name>', 'category of the model', 'text')
    .option('--format <name>', 'response format, for an API that is not OpenAI-compatible')
    .option('--key-env <name>', 'environment variable with the API key (default: a hidden prompt, or stdin)')
    .option('--no-key', 'the vendor needs no API key')
    .option('--role <role>', 'append the model to the route of this role (repeatable)', collectOption)
    .action((flags: AddModelFlags) =>
      start(async (env, scrubber) => (await import('./add-model.ts')).addModel(flags, env, scrubber)),
    )
  addTargetOptions(models.command('list'))
    .description('list aliases, vendors, categories, routes and key health')
    .option('--json', 'print one JSON object')
    .action((flags: AdminTarget & { json?: boolean }) =>
      start(async (env, scrubber) => (await import('./list-models.ts')).listModels(flags, env, scrubber)),
    )
  addTargetOptions(models.command('test'))
    .description('send one small real request and show the raw and the parsed response')
    .argument('<alias>', 'alias of the model')
    .option('--prompt <text>', 'prompt to send')
    .action((alias: string, flags: AdminTarget & { prompt?: string }) =>
      start(async (env, scrubber) =>
        (await import('./test-model.ts')).testModel(alias, flags, env, scrubber),
      ),
    )
}
