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
