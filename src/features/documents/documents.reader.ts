import { defineReader } from '../../files/child/reader-definition.ts'
import { UnreadableFileError } from '../../files/protocol/child-protocol.ts'

/** Each is loaded with the first file of its format. */
export default defineReader({
  files: {
    pdf: async (job, bytes) => (await import('./pdf.ts')).preparePdf(job, bytes),
    docx: async (job) => (await import('./docx.ts')).prepareDocx(job),
    odt: async (job) => (await import('./open-document.ts')).prepareOpenDocument(job, 'odt'),
    odp: async (job) => (await import('./open-document.ts')).prepareOpenDocument(job, 'odp'),
    pptx: async (job) => (await import('./pptx.ts')).preparePptx(job),
    html: async (job, bytes) => (await import('./html.ts')).prepareHtml(job, bytes),
    image: async (job) => (await import('./image.ts')).prepareImage(job),
    zip: async (job) => (await import('./zip.ts')).prepareZip(job),
    async ole({ path }) {
      throw new UnreadableFileError(await (await import('./compound-file.ts')).explainCompoundFile(path))
    },
  },
  sheets: { xlsx: async (path, use) => (await import('./workbook.ts')).withWorkbook(path, use) },
})
