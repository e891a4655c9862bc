import type { Delta } from '../state/run-view.ts'
import { printable } from './terminal.ts'

/** Text as it streams, each call by itself. A new attempt voids what an earlier one said. */
export const createStreamed = () => {
  const texts = new Map<string, { node: string; attempt: number; text: string }>()
  let latest = ''

  return {
    add({ run_id, node, call, attempt, text }: Delta): void {
      const key = `${run_id} ${node} ${call}`
      const before = texts.get(key)
      if (before && before.attempt > attempt) return
      const kept = before?.attempt === attempt ? before.text : ''
      texts.set(key, { node, attempt, text: kept + printable(text) })
      latest = key
    },
    /** The node has committed its action: what it streamed is in it. */
    settle(node: string): void {
      for (const [key, streamed] of texts) if (streamed.node === node) texts.delete(key)
    },
    /** The last lines of what streams right now, as many as leave room for the rest. */
    tail(size: { columns?: number; rows?: number }): string {
      const text = texts.get(latest)?.text ?? ''
      if (text.trim() === '') return ''
      const width = Math.max(20, (size.columns || 80) - 4)
      const lines = text
        .trim()
        .split('\n')
        .flatMap((line) => line.match(new RegExp(`.{1,${width}}`, 'gu')) ?? [''])
      return lines
        .slice(-Math.max(3, Math.floor((size.rows || 24) / 2)))
        .map((line) => `  ${line}`)
        .join('\n')
    },
  }
}
