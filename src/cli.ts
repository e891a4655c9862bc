#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type { Role } from './infra/config/cross-checks.ts'
import { type Environment, readEnvironment } from './infra/config.ts'

/** The commands of CONTRACT section 1. Each is loaded when it is called, so that --help is quick. */

type ServeFlags = { port?: string; host?: string; role: 'all' | 'api' | 'worker' }

const collect = (path: string, before: string[] = []): string[] => [...before, path]

const notEmpty = (text: string): string => {
  if (text.trim() === '') throw new InvalidArgumentError('It is empty.')
  return text
}

const createProgram = (env: Environment, end: (code: number) => void): Command => {
  const program = new Command('mason')
    .description('A durable agent runtime: jobs come from a queue and run through one graph over one state.')
    .exitOverride()
    .showHelpAfterError('(mason --help shows what there is)')
    .configureHelp({ showGlobalOptions: false })
    .version(process.env.npm_package_version ?? '', '-V, --version')
  return program
}
