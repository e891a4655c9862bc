import type { Context } from '../../graph/node.ts'
import { openDeadline } from '../../state/deadline.ts'
import { mimeTypeOf } from '../../state/files/image.ts'
import type { PreparedFiles } from '../../state/files/ports.ts'
import type { OtherFile } from '../../state/files/prepared.ts'
import type { Models } from '../../state/ports.ts'
import type { OriginFile, Usage } from '../../state/runtime-state.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { createEye, type Seen } from './look-at-image.ts'

/** Of all images of one step: how many are described, how many at once, and within what time. */
const most = { images: 20, atOnce: 4, ms: 120_000, bytes: 5 * 1024 * 1024 }

type Described = { prepared: PreparedFiles; described: string[]; usage: Usage }

/**
 * Adds to the images among prepared files what a model sees in them, or a note why there is nothing. A model that fails
 * is a note; rejects when aborted, and with faults of the database.
 */
export const describeImages = async (
  prepared: PreparedFiles,
  origins: readonly Readonly<OriginFile>[],
  services: Pick<Context<never>, 'files' | 'models' | 'log'>,
  signal: AbortSignal,
): Promise<Described> => {
  const images = Object.entries(prepared.other_files).filter(
    ([, { format, readable }]) => format === 'image' && readable,
  )
  if (images.length === 0) return { prepared, described: [], usage: noUsage }
  const files = new Map([...origins, ...prepared.origin_files].map((file) => [file.name, file]))
  const hasSight = canSee(services.models)
  const found = new Map<string, Seen>()
  const queue: [file: Readonly<OriginFile>, mimeType: string][] = []
  for (const [name, image] of images) {
    const [file, mimeType] = [files.get(name), mimeTypeOf(image)]
    const why = whyNot(image, mimeType)
    if (why !== null || !file || mimeType === null) found.set(name, { note: why ?? gone, usage: noUsage })
    else if (!hasSight) found.set(name, { note: blind, unseen: true, usage: noUsage })
    else if (queue.length === most.images) found.set(name, { note: tooMany, usage: noUsage })
    else queue.push([file, mimeType])
  }
  using late = openDeadline(most.ms, signal)
  // a fault ends the other calls too, so that nobody pays for answers that nobody reads
  const broken = new AbortController()
  const look = createEye(services, AbortSignal.any([late.signal, broken.signal]), signal)
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) found.set(next[0].name, await look(...next))
  }
  await Promise.all(
    Array.from({ length: most.atOnce }, () =>
      work().catch((error: unknown) => {
        queue.length = 0
        broken.abort(error)
      }),
    ),
  )
  broken.signal.throwIfAborted()
  return withFound(prepared, found)
}

/** Whether a model that sees is set up. */
export const canSee = (models: Pick<Models, 'sees'>): boolean => models.sees?.() === true

const blind =
  'no model that sees is set up; add one to the registry, of the category multimodal or with the capability vision, and the next turn looks at it'
const gone = 'its bytes are gone; send it again'
const tooMany = `only ${most.images} images are described in a turn; send it again by itself, under another name`

const whyNot = ({ facts }: OtherFile, mimeType: string | null): string | null => {
  if (mimeType === null)
    return 'models see PNG, JPEG, GIF and WebP; save it as one of these and send it again'
  if (typeof facts.bytes !== 'number' || facts.bytes <= most.bytes) return null
  const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)
  return `it has ${mib(facts.bytes)} MB, and models are shown ${mib(most.bytes)} MB at most; scale it down and send it again`
}

const withFound = (prepared: PreparedFiles, found: ReadonlyMap<string, Seen>): Described => {
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
        ...{ ...entry, notes: [...entry.notes, note] },
        ...(seen.passing && { tries: 1 }),
        ...(seen.unseen && { unseen: true as const }),
      }
    }
  }
  return { prepared: { ...prepared, other_files }, described, usage }
}
