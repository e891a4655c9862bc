import type { Embeddings } from '../../state/ports/embeddings.ts'
import { listScenarioTexts, type Scenario } from '../../state/scenario.ts'

/** Requests that fit no scenario: an embedding must find a row closer than these. */
const otherRequests = [
  'Hello, who are you and what can you do?',
  'What is the capital of France?',
  'Write a short poem about the sea.',
  '你好，今天天气怎么样？',
  '请解释一下量子力学。',
  'Erzähl mir einen Witz.',
]
const minContrast = 0.3
const minMargin = 0.1

/**
 * The row whose description or one of whose examples is closest to a request by the embedding model; none where no row is clearly
 * closer than the others and than requests of no scenario, and null without an embedding model. Models differ in how similar any two texts are to them, so the
 * similarity counts from that of the texts that do not fit up.
 */
export const matchBySimilarity = async (
  prompt: string,
  rows: readonly Pick<Scenario, 'name' | 'description' | 'examples'>[],
  compare: Embeddings['compare'],
  signal: AbortSignal,
): Promise<{ name: string | undefined } | null> => {
  const texts = [...otherRequests, ...rows.flatMap(listScenarioTexts)]
  const similarities = await compare(prompt, texts, signal)
  if (!similarities) return null
  const byText = new Map(texts.map((text, at) => [text, similarities[at] ?? -1]))
  const findClosest = (group: readonly string[]): number =>
    Math.max(-1, ...group.map((text) => byText.get(text) ?? -1))
  const [best, second] = rows
    .map((row) => ({ row, similarity: findClosest(listScenarioTexts(row)) }))
    .sort((a, b) => b.similarity - a.similarity)
  if (!best) return { name: undefined }
  const floor = Math.max(0, findClosest(otherRequests))
  const isClose = best.similarity - floor > minContrast * (1 - floor)
  const isLone = best.similarity - (second?.similarity ?? -1) > minMargin * (1 - floor)
  return { name: isClose && isLone ? best.row.name : undefined }
}
