/** Text files of a run: text to lines, and finding a file by the name a model gives. Pure. */

/** Lines that end in \n or \r\n; the end of the last line opens no further one, so an empty text has none. */
export const splitLines = (text: string): string[] => {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
}

const plainName = (name: string): string =>
  name
    .trim()
    .replace(/^(?:\.?\/)+/, '')
    .normalize('NFC')

/** The file of that exact name, else one that differs only in a leading ./ or / or in how accents are encoded. */
export const findFile = <File extends { readonly name: string }>(
  files: readonly File[],
  name: string,
): File | undefined =>
  files.find((file) => file.name === name) ?? files.find((file) => plainName(file.name) === plainName(name))
