// tier: all

import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { openFolder } from '../support/file-samples.ts'

test('the demo shows a run in the language of the dialogue, then the same as its trajectory', async () => {
  await using folder = await openFolder()
  const cwd = folder.path
  const { code, stdout } = await runCli(['--xml'], { cwd, env: { TMPDIR: cwd }, script: 'examples/demo.ts' })
  expect(code).toBe(0)
  const [shown = '', trajectory = ''] = stdout.split(
    /\n\ntrajectory \(written\), as mason trajectory prints it:\n\n/,
  )
  expect(trajectory).toMatch(
    /^<think>[\s\S]*<search_tool_server><query_table>[\s\S]*\n<execute_tools \/>\n<result index="0">[\s\S]*<answer>[\s\S]*\*\*8\*\*/,
  )
  expect(trajectory.startsWith(shown.slice(shown.indexOf('<think>')))).toBe(true)
})

test('the demo answers from its file and leaves nothing behind', async () => {
  await using folder = await openFolder()
  const cwd = folder.path
  const { code, stdout } = await runCli([], { cwd, env: { TMPDIR: cwd }, script: 'examples/demo.ts' })
  const left = await readdir(cwd)
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /South.*5,889\.7[\s\S]*\*\*8\*\*[\s\S]*completed · 3 of 3 todos[\s\S]*What to try next/,
  )
  expect(left.filter((name) => name.startsWith('mason-demo'))).toEqual([])
})
