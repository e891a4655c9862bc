import { openDeadline } from '../../state/deadline.ts'
import { readImageMimeType } from '../../state/files/image-description.ts'
import type { OtherFile } from '../../state/files/prepared-files.ts'
import type { PreparedFiles } from '../../state/ports/files.ts'
import type { Models } from '../../state/ports/models.ts'
import type { Services } from '../../state/ports/services.ts'
import type { OriginFile, Usage } from '../../state/runtime-state.ts'
import { addUsage, noUsage } from '../../state/token-usage.ts'
import { createImageDescriber, type ImageOutcome } from './image-describer.ts'

/** Of all images of one step: how many are described, how many at once, and within what time. */
const imageLimits = { images: 20, atOnce: 4, ms: 120_000, bytes: 5 * 1024 * 1024 }

type DescribedImages = { prepared: PreparedFiles; described: string[]; usage: Usage }

/**
 * Adds to the images among prepared files what a model sees in them, or a note why there is nothing. A model that fails
 * is a note; rejects when aborted, and with database errors.
 */
export const describeImages = async (
  prepared: PreparedFiles,
  origins: readonly Readonly<OriginFile>[],
  services: Pick<Services, 'files' | 'models' | 'log'>,
  signal: AbortSignal,
): Promise<DescribedImages> => {
  const images = Object.entries(prepared.other_files).filter(
    ([, { format, readable }]) => format === 'image' && readable,
  )
  if (images.length === 0) return { prepared, described: [], usage: noUsage }
  const files = new Map([...origins, ...prepared.origin_files].map((file) => [file.name, file]))
  const hasSight = canSee(services.models)
  const found = new Map<string, ImageOutcome>()
  const queue: [file: Readonly<OriginFile>, mimeType: string][] = []
  for (const [name, image] of images) {
    const [file, mimeType] = [files.get(name), readImageMimeType(image)]
    const why = findObstacle(image, mimeType)
    if (why !== null || !file || mimeType === null)
      found.set(name, { note: why ?? missingBytesNote, usage: noUsage })
    else if (!hasSight) found.set(name, { note: noVisionNote, needsVision: true, usage: noUsage })
    else if (queue.length === imageLimits.images) found.set(name, { note: tooManyNote, usage: noUsage })
    else queue.push([file, mimeType])
  }
  using late = openDeadline(imageLimits.ms, signal)
  // an error ends the other calls too: their answers would be paid for and not read
  const broken = new AbortController()
  const look = createImageDescriber(services, AbortSignal.any([late.signal, broken.signal]), signal)
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) found.set(next[0].name, await look(...next))
  }
  await Promise.all(
    Array.from({ length: imageLimits.atOnce }, () =>
      work().catch((error: unknown) => {
        queue.length = 0
        broken.abort(error)
      }),
    ),
  )
  broken.signal.throwIfAborted()
  return withDescriptions(prepared, found)
}

/** Whether a model that sees is set up. */
export const canSee = (models: Pick<Models, 'hasVision'>): boolean => models.hasVision?.() === true

const noVisionNote =
  'no model that sees is set up; add one to the registry, of the category multimodal or with the capability vision, and the next turn looks at it'
const missingBytesNote = 'its bytes are gone; send it again'
const tooManyNote = `only ${imageLimits.images} images are described in a turn; send it again by itself, under another name`

const findObstacle = ({ facts }: OtherFile, mimeType: string | null): string | null => {
  if (mimeType === null)
    return 'models see PNG, JPEG, GIF and WebP; save it as one of these and send it again'
  if (typeof facts.bytes !== 'number' || facts.bytes <= imageLimits.bytes) return null
  const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)
  return `it has ${mib(facts.bytes)} MB, and models are shown ${mib(imageLimits.bytes)} MB at most; scale it down and send it again`
}

const withDescriptions = (
  prepared: PreparedFiles,
  found: ReadonlyMap<string, ImageOutcome>,
): DescribedImages => {
  const other_files = { ...prepared.other_files }
  const described: string[] = []
  let usage = noUsage
  for (const [name, seen] of found) {
    const { [name]: entry } = other_files
    if (!entry) continue
    usage = addUsage(usage, seen.usage)
    if ('shows' in seen) {
      described.push(name)
      other_files[name] = { ...entry, facts: { ...entry.facts, shows: seen.shows } }
    } else {
      const note = `what it shows is not described: ${seen.note}`
      other_files[name] = {
        ...entry,
        notes: [...entry.notes, note],
        ...(seen.isTransient && { tries: 1 }),
        ...(seen.needsVision && { unseen: true as const }),
      }
    }
  }
  return { prepared: { ...prepared, other_files }, described, usage }
}
