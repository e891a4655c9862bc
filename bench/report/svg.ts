/** Words as they may stand in an SVG. */
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

export type Anchor = 'start' | 'middle' | 'end'

export const label = (x: number, y: number, text: string, anchor: Anchor = 'start', color = '#333'): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${color}">${escaped(text)}</text>`

export const line = (x1: number, y1: number, x2: number, y2: number, color = '#ccc'): string =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="${color}"/>`

/** A picture of this size under a title, on white, so that it can be read on dark pages too. */
export const picture = (width: number, height: number, title: string, parts: readonly string[]): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="12" y="22" font-size="14" font-weight="bold" fill="#111">${escaped(title)}</text>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')

/** Ours first; the others after it. */
export const colors = ['#1f6feb', '#9a6700', '#6e7781', '#a475f9'] as const
