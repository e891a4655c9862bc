import type { Command } from 'commander'

/** What a command works with: the admin API that its flags choose, and the output. */
export type CommandTools = {
  withAdmin(
    flags: { url?: string; token?: string },
    work: (admin: {
      call(
        method: 'GET' | 'POST',
        path: string,
        json?: unknown,
        query?: Readonly<Record<string, string | undefined>>,
      ): Promise<unknown>
      /** Prints lines, without secrets. */
      print(text: string): void
      /** Prints what a GET answers as it is, without secrets, ended by a newline on a terminal alone. */
      printBody(path: string, query: Readonly<Record<string, string | undefined>>): Promise<void>
    }) => Promise<void>,
  ): Promise<void>
  /** Adds `--url` and `--token`, which choose the server. */
  addTargetOptions(command: Command): Command
  formatTable(rows: readonly (readonly string[])[]): string
  /** Runs the process of this name. */
  runProcess(name: string): Promise<void>
  /** Works without settings and mason.config.ts; false: the exit code is 1. */
  runAlone(work: (tools: AloneTools) => Promise<boolean>): Promise<void>
}
/** What a command without settings works with. */
export type AloneTools = {
  /** Removes control characters. */
  toPrintable(text: string): string
  /** Ends the command for its wrong usage, with exit code 2. */
  refuse(message: string, remedy: string): never
}

/** `*.command.ts`: a command with its subcommands. */
export type CommandDefinition = {
  kind: 'command'
  name: string
  description: string
  add(command: Command, tools: CommandTools): void
}

/**
 * See `CommandDefinition`.
 *
 * @example
 * ```ts
 * import { defineCommand } from 'mason-runtime/features'
 *
 * export default defineCommand({
 *   name: 'announcements',
 *   description: 'list announcements',
 *   add(command, { addTargetOptions, withAdmin }) {
 *     addTargetOptions(command).action((flags: { url?: string; token?: string }) =>
 *       withAdmin(flags, async ({ call, print }) => print(JSON.stringify(await call('GET', '/admin/v1/announcements')))),
 *     )
 *   },
 * })
 * ```
 */
export const defineCommand = (command: Omit<CommandDefinition, 'kind'>): CommandDefinition => ({
  kind: 'command',
  ...command,
})
