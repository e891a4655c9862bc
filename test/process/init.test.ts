import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { openFolder } from '../support/file-samples.ts'

const root = join(import.meta.dirname, '..', '..')

test('mason init writes a project whose test passes, with the images of Mason, and overwrites nothing', async () => {
  await using folder = await openFolder()
  await mkdir(join(folder.path, 'node_modules'))
  await symlink(root, join(folder.path, 'node_modules', 'mason-runtime'))
  await symlink(join(root, 'node_modules', 'zod'), join(folder.path, 'node_modules', 'zod'))
  const options = { cwd: folder.path }
  expect(await runCli(['init', 'shop'], options)).toMatchObject({ code: 0 })
  const shop = join(folder.path, 'shop')
  const { stdout } = await promisify(execFile)(process.execPath, ['--test'], { cwd: shop })
  expect(stdout).toMatch(/# pass 1\n# fail 0/)
  const tool = join(shop, 'tools', 'refund-order.tool.ts')
  await writeFile(tool, 'mine')
  const again = await runCli(['init', 'shop'], options)
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('nothing was written')])
  expect(await readFile(tool, 'utf8')).toBe('mine')
  const compose = await readFile(join(shop, 'compose.yaml'), 'utf8')
  const known = `${await readFile(join(root, 'compose.yaml'), 'utf8')}${await readFile(join(root, 'Dockerfile'), 'utf8')}`
  for (const [, image = ''] of compose.matchAll(/image: (\S+)/g)) expect(known).toContain(image)
})
