// tier: all

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'

test('the demo shows a run in the language of the dialogue, then the same as its trajectory', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'mason-dialogue-demo-'))
  const { code, stdout } = await runCli(['--xml'], { cwd, env: { TMPDIR: cwd }, script: 'examples/demo.ts' })
  await rm(cwd, { recursive: true, force: true })
  expect(code).toBe(0)
  const [shown = '', trajectory = ''] = stdout.split(
    /\n\ntrajectory \(written\), as mason trajectory prints it:\n\n/,
  )
  expect(trajectory).toMatch(
    /^<think>[\s\S]*<search_tool_server><query_table>[\s\S]*\n<execute_tools \/>\n<result index="0">[\s\S]*<answer>[\s\S]*\*\*8\*\*/,
  )
  expect(trajectory.startsWith(shown.slice(shown.indexOf('<think>')))).toBe(true)
})
