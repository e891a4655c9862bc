import { dirname } from 'node:path'

/** Stands in a setting for the id of the business, so that each has a place of its own. */
export const businessMark = '{business}'

/** The part of a root that is there whoever asks; the folders of businesses may be made later. */
export const fixedRoot = (root: string): string => {
  const at = root.indexOf(businessMark)
  return at === -1 ? root : dirname(`${root.slice(0, at)}_`)
}

/** Whether one root serves all businesses, so that each can name the files of the others. */
export const isSharedRoot = (root: string | null): boolean => root !== null && !root.includes(businessMark)
