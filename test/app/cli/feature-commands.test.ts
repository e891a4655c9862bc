import { Command } from 'commander'
import { expect, test } from 'vitest'
import { loadFeatureCommands } from '../../../src/app/cli/features/feature-commands.ts'
import { defineCommand } from '../../../src/features/command-definition.ts'

const withCommand = (folder: string, name: string) => ({
  folder,
  files: {
    'a.command.ts': async () => ({ default: defineCommand({ name, description: '', add: () => {} }) }),
  },
})
const add = async (...sources: ReturnType<typeof withCommand>[]): Promise<void> => {
  const program = new Command().addCommand(new Command('serve'))
  ;(await loadFeatureCommands(sources)).add(
    program,
    async () => {},
    async () => {},
  )
}

test('a command that another has is refused, and both are named', async () => {
  await add(withCommand('a', 'notes'), withCommand('b', 'signs'))
  await expect(add(withCommand('a', 'serve'))).rejects.toThrow(
    'a/a.command.ts defines the command "serve", which Mason has',
  )
  await expect(add(withCommand('a', 'notes'), withCommand('b', 'notes'))).rejects.toThrow(
    'b/a.command.ts defines the command "notes", which a/a.command.ts has',
  )
})
