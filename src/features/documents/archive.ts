import { SaxesParser, type SaxesTagPlain } from 'saxes'
import yauzl from 'yauzl'
import {
  DamagedFileError,
  fileBounds,
  formatBytes,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import { decodeText } from '../../state/text/decode-text.ts'

/**
 * Opens a ZIP and counts the bytes that really come out of it, since the sizes in its directory are only claims. Throws
 * `UnreadableFileError` for a ZIP bomb.
 */
export const openArchive = async (path: string) => {
  // callers check names: a bad name costs its entry, not the archive
  const zip = await toDamaged(yauzl.openPromise(path, { decodeStrings: false, autoClose: false }))
  const entries: yauzl.Entry[] = []
  try {
    for await (const entry of zip.eachEntry()) {
      if (entries.length === fileBounds.zipEntries)
        throw new UnreadableFileError(`it has more than ${fileBounds.zipEntries} entries; pack fewer files`)
      entry.fileName = decodeEntryName(entry)
      entries.push(entry)
    }
  } catch (error) {
    zip.close()
    throw asDamaged(error)
  }
  const byName = new Map(entries.toReversed().map((entry) => [entry.fileName, entry]))
  let total = 0
  // an entry that is read again counts once
  const counted = new Map<yauzl.Entry, number>()
  return {
    entries,
    /** The first of that name. */
    entry: (name: string): yauzl.Entry | undefined => byName.get(name),
    async *chunks(entry: yauzl.Entry): AsyncGenerator<Buffer> {
      if ((entry.generalPurposeBitFlag & 1) === 1)
        throw new UnreadableFileError('it is encrypted with a password; pack it without one')
      if (entry.compressionMethod !== 0 && entry.compressionMethod !== 8)
        throw new UnreadableFileError(
          `it is packed in a way that is not read (method ${entry.compressionMethod}); pack it as an ordinary ZIP`,
        )
      const stream = await toDamaged(zip.openReadStreamPromise(entry))
      let bytes = 0
      for await (const chunk of readDamaged(stream)) {
        bytes += chunk.length
        const before = counted.get(entry) ?? 0
        if (bytes > before) {
          total += bytes - before
          counted.set(entry, bytes)
        }
        if (total > fileBounds.zipBytes)
          throw new UnreadableFileError(
            `it unpacks to more than ${formatBytes(fileBounds.zipBytes)}; pack fewer or smaller files`,
          )
        if (bytes > 1024 * 1024 && bytes > entry.compressedSize * fileBounds.zipRatio)
          throw new UnreadableFileError(
            `"${entry.fileName.slice(0, 100)}" unpacks to more than ${fileBounds.zipRatio} times its size, like a ZIP bomb; pack it with an ordinary program`,
          )
        yield chunk
      }
    },
    [Symbol.dispose]: (): void => zip.close(),
  }
}

/** What a parser of an archive rejects is wrong in its bytes. */
const asDamaged = (error: unknown): Error =>
  error instanceof UnreadableFileError ? error : new DamagedFileError((error as Error).message)

const toDamaged = <Result>(reading: Promise<Result>): Promise<Result> =>
  reading.catch((error: unknown) => {
    throw asDamaged(error)
  })

async function* readDamaged(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream
  } catch (error) {
    throw asDamaged(error)
  }
}

/** A marked name is UTF-8; others are in the encoding of the machine that packed them. */
const decodeEntryName = ({ generalPurposeBitFlag, fileNameRaw, extraFields }: yauzl.Entry): string =>
  ((generalPurposeBitFlag & 0x800) === 0 ? decodeText(fileNameRaw) : null) ??
  yauzl.getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, false)

/** See `openArchive`. */
export type Archive = Awaited<ReturnType<typeof openArchive>>

/** Why XML with a DTD is refused: its entities could expand without limit. */
const dtdMessage =
  'its XML declares a DTD, which office files do not need; save it again in an office program'
/** Why deep XML is refused: it overflows the stack of a recursive parser. */
export const nestingMessage = `its XML elements are nested more than ${fileBounds.nesting} deep; save it again in an office program, or as PDF`

/** `text` comes with the name of the element that it is right inside; `parent`: the element around that one. */
type XmlEvents = {
  open?(element: string, attributes: Record<string, string>, parent?: string): void
  text?(text: string, element: string, parent?: string): void
  close?(element: string): void
}

/**
 * Reads XML chunk by chunk. Rejects a DTD, so that no entity can expand, and deep nesting. Names come without their
 * prefix.
 */
export const openXmlParser = (events: XmlEvents) => {
  const parser = new SaxesParser()
  const elements: string[] = []
  parser.on('doctype', () => {
    throw new UnreadableFileError(dtdMessage)
  })
  parser.on('error', (error) => {
    throw new DamagedFileError(error.message)
  })
  parser.on('opentag', (tag) => {
    const element = tag.name.slice(tag.name.indexOf(':') + 1)
    events.open?.(element, (tag as SaxesTagPlain).attributes, elements.at(-1))
    elements.push(element)
    if (elements.length > fileBounds.nesting) throw new UnreadableFileError(nestingMessage)
  })
  parser.on('text', (text) => events.text?.(text, elements.at(-1) ?? '', elements.at(-2)))
  parser.on('closetag', () => {
    const element = elements.pop() ?? ''
    events.close?.(element)
  })
  const decoder = new TextDecoder()
  return {
    write(chunk: Buffer): void {
      parser.write(decoder.decode(chunk, { stream: true }))
    },
    close(): void {
      parser.write(decoder.decode()).close()
    },
  }
}

/** Reads one XML part to its end and yields after each chunk; a missing part has no events. */
export async function* parseXml(archive: Archive, name: string, events: XmlEvents): AsyncGenerator<void> {
  const entry = archive.entry(name)
  if (entry === undefined) return
  const parser = openXmlParser(events)
  for await (const chunk of archive.chunks(entry)) {
    parser.write(chunk)
    yield
  }
  parser.close()
}

/** Reads one XML part; a missing part has no events. */
export const readXml = async (...part: Parameters<typeof parseXml>): Promise<void> => {
  for await (const _chunk of parseXml(...part));
}

/** The parts that a part relates to: path from the root of the archive by relationship id. */
export const readRelations = async (archive: Archive, part: string): Promise<Map<string, string>> => {
  const at = part.lastIndexOf('/')
  const folder = part.slice(0, at + 1)
  const relations = new Map<string, string>()
  await readXml(archive, `${folder}_rels/${part.slice(at + 1)}.rels`, {
    open: (name, { Id, Target }) => {
      if (name === 'Relationship' && Id !== undefined && Target !== undefined)
        relations.set(Id, new URL(Target, `file:///${folder}`).pathname.slice(1))
    },
  })
  return relations
}

/** The parts that elements of this name refer to, in their order, with the attributes of the element. */
export const listRelatedParts = async (
  archive: Archive,
  part: string,
  element: string,
): Promise<{ path: string; attributes: Record<string, string> }[]> => {
  const relations = await readRelations(archive, part)
  const parts: { path: string; attributes: Record<string, string> }[] = []
  await readXml(archive, part, {
    open: (name, attributes) => {
      const path = name === element ? relations.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined && archive.entry(path)) parts.push({ path, attributes })
    },
  })
  return parts
}
