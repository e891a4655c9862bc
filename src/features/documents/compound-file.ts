import { createReadStream } from 'node:fs'
import { encryptedMessage } from '../../files/protocol/child-protocol.ts'

/** What a compound file is, by the names of its streams; the first that is there counts. */
const meanings: readonly [stream: string, message: string][] = [
  ['EncryptedPackage', encryptedMessage],
  ['WordDocument', 'it is an old Word document (DOC); save it as DOCX or PDF and upload that'],
  ['Workbook', 'it is an old Excel workbook (XLS); save it as XLSX or CSV and upload that'],
  ['Book', 'it is an old Excel workbook (XLS); save it as XLSX or CSV and upload that'],
  [
    'PowerPoint Document',
    'it is an old PowerPoint presentation (PPT); save it as PPTX or PDF and upload that',
  ],
  ['__properties_version1.0', 'it is an Outlook message (MSG); save it as text, HTML or PDF and upload that'],
]
const unknown =
  'it is an old or an encrypted office file; save it without a password as DOCX, XLSX, PPTX or PDF and upload that'

/** Each stream's entry in the directory has 128 bytes, at a multiple of 128, and begins with its name in UTF-16 ([MS-CFB] 2.6). */
const entryBytes = 128

/** Why a compound file (OLE) is not read: what it is, and what to do. */
export const explainCompoundFile = async (path: string): Promise<string> => {
  const names = meanings.map(([stream]) => Buffer.from(`${stream}\0`, 'utf16le'))
  const found = new Set<number>()
  const chunks = createReadStream(path, { highWaterMark: 8192 * entryBytes }) as AsyncIterable<Buffer>
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += entryBytes)
      for (const [index, name] of names.entries())
        if (chunk[at] === name[0] && name.equals(chunk.subarray(at, at + name.length))) found.add(index)
  return meanings[Math.min(...found)]?.[1] ?? unknown
}
