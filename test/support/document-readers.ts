import { fileURLToPath } from 'node:url'

/** The files with readers of documents, for a file process. */
export const documentReaders = [
  fileURLToPath(new URL('../../src/features/documents/documents.reader.ts', import.meta.url)),
]
