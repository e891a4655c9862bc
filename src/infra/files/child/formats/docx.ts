import mammoth from 'mammoth'
import type { Found, PrepareJob } from '../protocol.ts'
import { openArchive } from './archive.ts'
import { markdownOf } from './html.ts'
import { addMarkdown, createDocument, cutNote, requireText } from './lines.ts'

export const prepareDocx = async (job: PrepareJob): Promise<Found> => {
  await checkParts(job.path)
  const { value } = await mammoth.convertToHtml(
    { path: job.path },
    { convertImage: mammoth.images.imgElement(async () => ({ src: '' })), externalFileAccess: false },
  )
  const document = createDocument()
  addMarkdown(document, markdownOf(value))
  requireText(document, 'there is no text in it; if it holds pictures only, upload those')
  return { format: 'docx', document: await document.write(job, null, null), notes: cutNote(document) }
}

/** mammoth unpacks as it likes, so every part it may open is unpacked once before, within the bounds. */
const checkParts = async (path: string): Promise<void> => {
  const archive = await openArchive(path)
  try {
    for (const entry of archive.entries) {
      let head = ''
      for await (const chunk of archive.chunks(entry))
        if (head.length < 4096) head += chunk.toString('latin1')
      if (/\.(xml|rels)$/.test(entry.fileName)) refuseDtd(head)
    }
  } finally {
    archive.close()
  }
}

const refuseDtd = (head: string): void => {
  if (/<!(DOCTYPE|ENTITY)/i.test(head))
    throw new Error('its XML declares a DTD, which office files have no use for')
}
