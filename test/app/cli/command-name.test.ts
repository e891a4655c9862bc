import { expect, test } from 'vitest'
import { resolveCommandName, withCommandName } from '../../../src/app/cli/command-name.ts'

test.each([
  ['a clone', '/shop/mason/dist/src/cli.js', '/shop/mason/dist/src/cli', 'npx mason'],
  [
    'an installed package',
    '/shop/node_modules/.bin/mason',
    '/shop/node_modules/mason-runtime/dist',
    'npx mason-runtime',
  ],
  ['a global command', '/usr/bin/mason', '/usr/lib/node_modules/mason-runtime/dist', 'mason'],
  ['its longer name', '/usr/bin/mason-runtime', '/usr/lib/node_modules/mason-runtime/dist', 'mason-runtime'],
])('a hint of %s names a command that can be pasted', (_, script, folder, expected) => {
  expect(resolveCommandName(script, folder)).toBe(expected)
})

test('commands in a remedy get the name, and other words do not', () => {
  const remedy = 'run `mason doctor` or npx mason migrate; see "mason serve", /mason worker and mason itself'
  expect(withCommandName(remedy, 'npx mason-runtime')).toBe(
    'run `npx mason-runtime doctor` or npx mason migrate; see "npx mason-runtime serve", /mason worker and mason itself',
  )
})
