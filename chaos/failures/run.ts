import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Runs a program to its end; true when it succeeded. Without pipes: servers it starts would hold them for ever. */
export const succeeds = async (command: string, args: readonly string[]): Promise<boolean> => {
  const child = spawn(command, args, { stdio: 'ignore', cwd: '/' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

/** The same; throws when it failed. */
export const run = async (command: string, args: readonly string[]): Promise<void> => {
  if (!(await succeeds(command, args))) throw new Error(`${command} ${args.join(' ')} failed`)
}
