/** Text of files, tools and memory comes between marks; what stands inside is never read as part of a prompt's own form. */

const opening = /^<(data-[0-9a-f]+) origin="\w+" trusted="no">$/

/** The lines without the marks, each with whether it stands between some. */
export const fencedLines = (text: string): { line: string; isInside: boolean }[] => {
  let mark: string | null = null
  return text.split('\n').flatMap((line) => {
    const opened = mark === null ? opening.exec(line)?.[1] : undefined
    if (opened !== undefined) mark = opened
    else if (mark !== null && line === `</${mark}>`) mark = null
    else return [{ line, isInside: mark !== null }]
    return []
  })
}

export const unfenced = (text: string): string =>
  text.includes('<data-')
    ? fencedLines(text)
        .map(({ line }) => line)
        .join('\n')
    : text
