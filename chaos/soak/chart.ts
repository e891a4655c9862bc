import type { Sample } from './samples.ts'

const [width, height, left, right, top, bottom] = [760, 320, 48, 150, 16, 32]
const colors = ['#1f6feb', '#8250df', '#1a7f37', '#cf222e', '#9a6700']

/** Memory over time as a small SVG: one line for each of these columns. */
export const drawMemory = (samples: readonly Sample[], names: readonly string[]): string => {
  const last = samples.at(-1)?.at_s ?? 1
  const most = Math.max(...samples.flatMap((sample) => names.map((name) => sample[name] ?? 0)))
  const ceiling = Math.ceil(most / 50) * 50
  const x = (seconds: number): string => (left + (seconds / last) * (width - left - right)).toFixed(1)
  const y = (value: number): string =>
    (height - bottom - (value / ceiling) * (height - top - bottom)).toFixed(1)
  const text = (at: string, down: string, said: string, more = ''): string =>
    `<text x="${at}" y="${down}" ${more}>${said}</text>`
  const grid = Array.from({ length: 6 }, (_, line) => (ceiling / 5) * line).flatMap((value) => [
    `<line x1="${left}" x2="${width - right}" y1="${y(value)}" y2="${y(value)}" stroke="#d0d7de"/>`,
    text(String(left - 6), y(value), String(value), 'text-anchor="end"'),
  ])
  const minutes = Array.from({ length: 5 }, (_, mark) => (last / 4) * mark).map((seconds) =>
    text(x(seconds), String(height - 10), `${(seconds / 60).toFixed(1)} min`, 'text-anchor="middle"'),
  )
  const lines = names.flatMap((name, index) => {
    const color = colors[index % colors.length]
    const points = samples.map((sample) => `${x(sample.at_s)},${y(sample[name] ?? 0)}`).join(' ')
    return [
      `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${points}"/>`,
      text(
        String(width - right + 8),
        y(samples.at(-1)?.[name] ?? 0),
        name.replaceAll('_', ' '),
        `fill="${color}"`,
      ),
    ]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11" role="img">`,
    `<title>${names.join(', ').replaceAll('_', ' ')} over the time of the soak</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...grid,
    ...minutes,
    ...lines,
    '</svg>\n',
  ].join('\n')
}
