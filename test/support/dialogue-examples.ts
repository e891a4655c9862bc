import { readFileSync } from 'node:fs'

/** The example trajectories of the requirement, as it prints them. */
export const dialogueExamples = JSON.parse(
  readFileSync(new URL('./dialogue-examples.json', import.meta.url), 'utf8'),
) as Record<'step by step' | 'planned at once', string>

/** Replies and what was put back, in turn: a reply ends with `<execute_tools />`. */
export const repliesOf = (trajectory: string): string[] =>
  trajectory.split(/(?<=<execute_tools \/>)\n(?:<result index="\d+">.*<\/result>\n)+/)
