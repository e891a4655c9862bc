/** One `# Title` section; empty when its body is. */
export const section = (title: string, body: string): string =>
  body.trim() === '' ? '' : `# ${title}\n${body.trim()}`

export const joinSections = (sections: readonly string[]): string =>
  sections.filter((text) => text !== '').join('\n\n')
