import { createRequire } from 'node:module'
import type mammothLibrary from 'mammoth'
import { addMarkdown, createDocument } from '../../files/child/formats/document-text.ts'
import {
  DamagedFileError,
  type FileContents,
  type PrepareJob,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import { nestingMessage, openArchive, openXmlParser } from './archive.ts'
import { toMarkdown } from './html.ts'

/**
 * The process runs without `__proto__`, with which mammoth derives its promises from Promise. A setter serves it: on all
 * objects while its modules load and no other code can run, from then on for promises. No object ever gets a getter, so
 * `object['__proto__'][key] = value`, which pollutes prototypes, stays impossible (decision 38).
 */
const loadMammoth = (): typeof mammothLibrary => {
  const setter = {
    configurable: true,
    set(this: object, prototype: object) {
      Object.setPrototypeOf(this, prototype)
    },
  }
  Object.defineProperty(Promise.prototype, '__proto__', setter)
  Object.defineProperty(Object.prototype, '__proto__', setter)
  try {
    return createRequire(import.meta.url)('mammoth')
  } finally {
    Reflect.deleteProperty(Object.prototype, '__proto__')
  }
}
const mammoth = loadMammoth()

/** Reads a DOCX document as Markdown. */
export const prepareDocx = async (job: PrepareJob): Promise<FileContents> => {
  await checkArchiveParts(job.path)
  const { value } = await mammoth
    .convertToHtml(
      { path: job.path },
      { convertImage: mammoth.images.imgElement(async () => ({ src: '' })), externalFileAccess: false },
    )
    .catch((error: Error) => {
      // deep XML that only the parser of mammoth reads overflows its stack
      if (error instanceof RangeError) throw new UnreadableFileError(nestingMessage)
      throw damagedPatterns.test(error.message) ? new DamagedFileError(error.message) : error
    })
  const document = createDocument()
  addMarkdown(document, toMarkdown(value))
  return document.write(job, { format: 'docx' }, 'it has no text; if it holds pictures only, upload those')
}

/** What mammoth says of XML that is not well-formed, and of parts that are missing. */
const damagedPatterns = /^(fatalError|error|warning): |^Could not find |^unclosed /

/**
 * mammoth unpacks and parses without limits, so this does once before, within ours. What is not well-formed may be in a
 * part that mammoth does not read.
 */
const checkArchiveParts = async (path: string): Promise<void> => {
  using archive = await openArchive(path)
  for (const entry of archive.entries) {
    let parser = /\.(xml|rels)$/.test(entry.fileName) ? openXmlParser({}) : null
    for await (const chunk of archive.chunks(entry))
      try {
        parser?.write(chunk)
      } catch (error) {
        if (!(error instanceof DamagedFileError)) throw error
        parser = null
      }
  }
}
