import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getDocumentProxy } from 'unpdf'
import { createDocument, type DocumentText } from '../../files/child/formats/document-text.ts'
import {
  DamagedFileError,
  encryptedMessage,
  type FileContents,
  fileBounds,
  type PrepareJob,
  type UnpackedFile,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readPageImages } from './page-images.ts'

type Item = { str?: string; hasEOL?: boolean; height?: number; transform?: number[] }
type Line = { text: string; height: number }

/** Pages without text of which the images are opened: as many as a turn describes. */
const maxImagePages = 20
/** Of the processor time of a file (30 s): the most before no further image is decoded. */
const maxImageMs = 15_000
/** Larger images are not decoded: they would take the memory that the text needs. A4 at 400 dpi fits. */
const maxImagePixels = 16_000_000

/** Reads the text of a PDF page by page. The images that make a page without text are files of their own. */
export const preparePdf = async (job: PrepareJob, bytes: number): Promise<FileContents> => {
  if (bytes > fileBounds.wholeBytes * 2)
    throw new UnreadableFileError('it has more than 96 MB; split it, or remove its pictures')
  const pdf = await openPdf(job.path)
  const document = createDocument()
  const pages = Math.min(pdf.numPages, fileBounds.pages)
  const blank: number[] = []
  const scanned: number[] = []
  const unseen: number[] = []
  const unpacked: UnpackedFile[] = []
  const start = process.cpuUsage()
  for (let number = 1; number <= pages && !document.isTruncated; number += 1) {
    const page = await pdf.getPage(number).catch((error: Error) => {
      throw new DamagedFileError(error.message)
    })
    const { items } = await page.getTextContent()
    document.addPage()
    const lines = toLines(items as Item[])
    addLines(document, lines)
    if (lines.length === 0) {
      const { user, system } = process.cpuUsage(start)
      const isLate = scanned.length === maxImagePages || (user + system) / 1000 > maxImageMs
      const { count, pngs } = isLate ? { count: 0, pngs: [] } : await readPageImages(page)
      const kind = isLate ? unseen : count > 0 ? scanned : blank
      kind.push(number)
      for (const [index, png] of pngs.entries()) {
        const name = `page ${number}${index === 0 ? '' : ` image ${index + 1}`}.png`
        const path = join(job.folder, String(unpacked.length))
        await writeFile(path, png)
        unpacked.push({ name, path, bytes: png.length })
      }
    }
    page.cleanup()
  }
  const { info } = await pdf.getMetadata().catch(() => ({ info: null }))
  const title = (info as { Title?: unknown } | null)?.Title
  const opened = unpacked.map(({ name }) => JSON.stringify(`${job.name}/${name}`)).join(', ')
  const where = opened === '' ? '' : `, opened as ${cutText(opened, 300)}`
  const scans = `${namePages(scanned, 'is an image', 'are images')} without text${where}`
  const notes = [
    ...(scanned.length > 0 ? [scans] : []),
    ...(unseen.length > 0
      ? [
          `${namePages(unseen, 'has', 'have')} no text either; upload them by themselves to have their images opened`,
        ]
      : []),
    ...(blank.length > 0 ? [`${namePages(blank, 'has', 'have')} no text`] : []),
    ...(pdf.numPages > pages ? [`only the first ${pages} of its ${pdf.numPages} pages are read`] : []),
  ]
  const images = unpacked.length > 0 ? { unpacked } : {}
  if (document.isBlank && unpacked.length > 0)
    return { format: 'pdf', facts: { pages: pdf.numPages }, notes, ...images }
  const contents = await document.write(
    job,
    { format: 'pdf', title: typeof title === 'string' ? title : '', pages: pdf.numPages },
    scanned.length > 0
      ? `${notes.join('; ')}; run text recognition on it and upload the result`
      : 'it has no text: its pages are blank, or drawn without letters',
  )
  return { ...contents, notes: [...contents.notes, ...notes], ...images }
}

/** Such as "pages 2-4 and 7 are". */
const namePages = (pages: readonly number[], one: string, many: string): string => {
  const runs: [first: number, last: number][] = []
  for (const page of pages) {
    const run = runs.at(-1)
    if (run?.[1] === page - 1) run[1] = page
    else runs.push([page, page])
  }
  const named = runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
  return pages.length === 1 ? `page ${named} ${one}` : `pages ${named.join(', ')} ${many}`
}

const openPdf = async (path: string) => {
  try {
    return await getDocumentProxy(new Uint8Array(await readFile(path)), {
      isEvalSupported: false,
      disableFontFace: true,
      useSystemFonts: false,
      verbosity: 0,
      maxImageSize: maxImagePixels,
    })
  } catch (error) {
    const { name, message } = error as Error
    if (name === 'PasswordException') throw new UnreadableFileError(encryptedMessage)
    throw name === 'InvalidPDFException' ? new DamagedFileError(message) : error
  }
}

const toLines = (items: readonly Item[]): Line[] => {
  const lines: Line[] = []
  let text = ''
  let height = 0
  const end = (): void => {
    if (text.trim() !== '') lines.push({ text: text.trim(), height })
    text = ''
    height = 0
  }
  for (const { str = '', hasEOL, height: tall = 0 } of items) {
    text += str
    if (str.trim() !== '') height = Math.max(height, Math.round(tall * 2) / 2)
    if (hasEOL) end()
  }
  end()
  return lines
}

/** A short line in letters 1.2 times as tall as most of its page is a heading. */
const addLines = (document: DocumentText, lines: readonly Line[]): void => {
  const usual = commonHeight(lines)
  for (const { text, height } of lines) {
    if (usual > 0 && height >= usual * 1.2 && text.length <= 120)
      document.addSection(text, height >= usual * 1.6 ? 1 : 2)
    document.addLine(text)
  }
}

/** The height of most characters. */
const commonHeight = (lines: readonly Line[]): number => {
  const chars = new Map<number, number>()
  for (const { text, height } of lines) chars.set(height, (chars.get(height) ?? 0) + text.length)
  return [...chars].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0
}
