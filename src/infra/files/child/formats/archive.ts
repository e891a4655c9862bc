import type { Readable } from 'node:stream'
import { SaxesParser, type SaxesTagPlain } from 'saxes'
import yauzl from 'yauzl'
import { decodeText } from '../../../../state/files/decode-text.ts'
import { bounds, megabytes, Unreadable } from '../protocol.ts'

type Entry = yauzl.Entry

/**
 * A ZIP, its real bytes counted over all that is read of it: what its directory says of sizes is only a claim. Throws
 * Unreadable on a bomb.
 */
export const openArchive = async (path: string) => {
  // names are checked by who uses them: one bad name costs that entry, not the archive
  const zip = await yauzl.openPromise(path, { decodeStrings: false, autoClose: false })
  const entries: Entry[] = []
  let count = 0
  try {
    for await (const entry of zip.eachEntry()) {
      count += 1
      if (count > bounds.zipEntries)
        throw new Unreadable(`it has more than ${bounds.zipEntries} entries; pack fewer files`)
      entry.fileName = nameOf(entry)
      entries.push(entry)
    }
  } catch (error) {
    zip.close()
    throw error
  }
  let total = 0
  // an entry that is read again counts once
  const known = new Map<Entry, number>()
  return {
    entries,
    entry: (name: string): Entry | undefined => entries.find(({ fileName }) => fileName === name),
    async *chunks(entry: Entry): AsyncGenerator<Buffer> {
      if ((entry.generalPurposeBitFlag & 1) === 1)
        throw new Unreadable('it is encrypted with a password; pack it without one')
      const stream: Readable = await zip.openReadStreamPromise(entry)
      let bytes = 0
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        bytes += chunk.length
        const before = known.get(entry) ?? 0
        if (bytes > before) {
          total += bytes - before
          known.set(entry, bytes)
        }
        if (total > bounds.zipBytes)
          throw new Unreadable(
            `it unpacks to more than ${megabytes(bounds.zipBytes)}; pack fewer or smaller files`,
          )
        if (bytes > 1024 * 1024 && bytes > entry.compressedSize * bounds.zipRatio)
          throw new Unreadable(
            `"${entry.fileName.slice(0, 100)}" unpacks to more than ${bounds.zipRatio} times its size, as a bomb does; pack it in the usual way`,
          )
        yield chunk
      }
    },
    close: (): void => zip.close(),
  }
}

/** Names of old packers are in the encoding of their machine; those that are marked are UTF-8. */
const nameOf = ({ generalPurposeBitFlag, fileNameRaw, extraFields }: Entry): string =>
  ((generalPurposeBitFlag & 0x800) === 0 ? decodeText(fileNameRaw) : null) ??
  yauzl.getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, false)

export type Archive = Awaited<ReturnType<typeof openArchive>>

type XmlEvents = {
  open?(name: string, attributes: Record<string, string>): void
  text?(text: string): void
  close?(name: string): void
}

/** A parser of XML parts: no DTD is taken, so that no entity can grow. Names come without their prefix. */
export const createXml = (events: XmlEvents): SaxesParser => {
  const parser = new SaxesParser()
  const plain = (name: string): string => name.slice(name.indexOf(':') + 1)
  parser.on('doctype', () => {
    throw new Unreadable(
      'its XML declares a DTD, which office files have no use for; save it anew in an office program',
    )
  })
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', (tag) => events.open?.(plain(tag.name), (tag as SaxesTagPlain).attributes))
  parser.on('text', (text) => events.text?.(text))
  parser.on('closetag', (tag) => events.close?.(plain(tag.name)))
  return parser
}

/** Reads one XML part to its end; nothing when it is not there. */
export const readXml = async (archive: Archive, name: string, events: XmlEvents): Promise<void> => {
  const entry = archive.entry(name)
  if (entry === undefined) return
  const parser = createXml(events)
  const decoder = new TextDecoder()
  for await (const chunk of archive.chunks(entry)) parser.write(decoder.decode(chunk, { stream: true }))
  parser.write(decoder.decode())
  parser.close()
}

/** Id -> path of the parts that a part relates to, paths from the root of the archive. */
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
