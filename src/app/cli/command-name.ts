import { basename } from 'node:path'

/**
 * How to call this program, for commands that people paste: `mason` where it is installed globally, `npx mason` in a clone, and
 * `npx mason-runtime` elsewhere, because `mason` on npm is another program. `folder` is that of this program.
 */
export const resolveCommandName = (script = process.argv[1] ?? '', folder = import.meta.dirname): string => {
  if (/^mason(-runtime)?$/.test(basename(script)) && !script.includes('node_modules')) return basename(script)
  return folder.includes('node_modules') ? 'npx mason-runtime' : 'npx mason'
}

/** The text with its commands, such as `mason doctor`, as they can be pasted here. */
export const withCommandName = (text: string, name = resolveCommandName()): string =>
  text.replaceAll(
    /(?<![\w/-]|npx )mason (?=(?:ap2|dev|doctor|effects|init|keys|migrate|models|queue|runs?|serve|tokens|tools|webhooks|worker)\b)/g,
    `${name} `,
  )
