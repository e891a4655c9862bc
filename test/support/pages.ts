import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

/** A fenced code block: what follows the fence (`sh run`, `ts`, or nothing), and the code without its indent. */
export type Block = { info: string; code: string }
export type Page = { text: string; blocks: Block[]; headings: string[] }

/** A Markdown page of the repository. Headings keep their `#`; what is inside code blocks is no heading. */
export const readPage = async (path: string): Promise<Page> => {
  const text = await readFile(join(root, path), 'utf8')
  const fenced = /^( *)```([^\n]*)\n([\s\S]*?)^ *```$/gm
  const blocks = [...text.matchAll(fenced)].map(([, indent = '', info = '', code = '']) => ({
    info: info.trim(),
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }))
  const headings = text.replaceAll(fenced, '').match(/^#+ .*$/gm) ?? []
  return { text, blocks, headings }
}

/** The files of a repository that a page shows: blocks marked `repository`, which begin with their path as a comment. */
export const listRepositoryFiles = ({ blocks }: Page): { name: string; code: string }[] =>
  blocks.flatMap(({ info, code }) => {
    const name = /^(?:\/\/|--) (\S+)\n/.exec(code)?.[1]
    return info.endsWith(' repository') && name !== undefined ? [{ name, code }] : []
  })
