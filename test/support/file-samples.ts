import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PDFDocument, StandardFonts } from 'pdf-lib'
import yazl from 'yazl'

/** Small files of every kind, made as they are needed. */

export const zipOf = async (entries: Record<string, string | Uint8Array>): Promise<Buffer> => {
  const zip = new yazl.ZipFile()
  for (const [name, content] of Object.entries(entries)) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export const pdfOf = async (pages: readonly (readonly string[])[]): Promise<Buffer> => {
  const pdf = await PDFDocument.create()
  const font = await pdf.embedFont(StandardFonts.Helvetica)
  for (const lines of pages) {
    const page = pdf.addPage()
    for (const [at, text] of lines.entries())
      page.drawText(text, { x: 50, y: 760 - at * 24, size: at === 0 ? 20 : 10, font })
  }
  return Buffer.from(await pdf.save())
}

const xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const office = 'http://schemas.openxmlformats.org'
const relations = (targets: readonly (readonly [id: string, type: string, target: string])[]): string =>
  `${xml}<Relationships xmlns="${office}/package/2006/relationships">${targets
    .map(
      ([id, type, target]) =>
        `<Relationship Id="${id}" Type="${office}/officeDocument/2006/relationships/${type}" Target="${target}"/>`,
    )
    .join('')}</Relationships>`
const contentTypes = `${xml}<Types xmlns="${office}/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>`

export const docxParts = (body: string, prolog = xml): Record<string, string> => ({
  '[Content_Types].xml': contentTypes,
  '_rels/.rels': relations([['r1', 'officeDocument', 'word/document.xml']]),
  'word/document.xml': `${prolog}<w:document xmlns:w="${office}/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`,
})

export const paragraph = (text: string, style?: string): string =>
  `<w:p>${style ? `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>` : ''}<w:r><w:t>${text}</w:t></w:r></w:p>`

export const pptxParts = (
  slides: readonly { title: string; lines: readonly string[] }[],
): Record<string, string> => {
  const box = (type: string, text: string): string =>
    `<p:sp><p:nvSpPr><p:nvPr>${type ? `<p:ph type="${type}"/>` : ''}</p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`
  return {
    '[Content_Types].xml': contentTypes,
    'ppt/presentation.xml': `${xml}<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>${slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="r${at}"/>`).join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      slides.map((_, at) => [`r${at}`, 'slide', `slides/slide${at + 1}.xml`]),
    ),
    ...Object.fromEntries(
      slides.map(({ title, lines }, at) => [
        `ppt/slides/slide${at + 1}.xml`,
        `${xml}<p:sld xmlns:p="p" xmlns:a="a">${box('title', title)}${lines.map((line) => box('', line)).join('')}</p:sld>`,
      ]),
    ),
  }
}

/** Cells as XML of the sheet; `s="1"` is a date, `t="s"` a shared string. */
export const xlsxParts = (
  sheets: Record<string, string>,
  strings: readonly string[] = [],
): Record<string, string> => ({
  '[Content_Types].xml': contentTypes,
  'xl/workbook.xml': `${xml}<workbook xmlns="m" xmlns:r="r"><sheets>${Object.keys(sheets)
    .map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="r${at}"/>`)
    .join('')}</sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': relations(
    Object.keys(sheets).map((_, at) => [`r${at}`, 'worksheet', `worksheets/sheet${at + 1}.xml`]),
  ),
  'xl/styles.xml': `${xml}<styleSheet xmlns="m"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
  'xl/sharedStrings.xml': `${xml}<sst xmlns="m">${strings.map((text) => `<si><t>${text}</t></si>`).join('')}</sst>`,
  ...Object.fromEntries(
    Object.values(sheets).map((rows, at) => [
      `xl/worksheets/sheet${at + 1}.xml`,
      `${xml}<worksheet xmlns="m"><sheetData>${rows}</sheetData></worksheet>`,
    ]),
  ),
})

/** The head of a PNG that says to be so large; it has no pixels. */
export const pngOf = (width: number, height: number): Buffer => {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452000000000000000008060000001f15c489', 'hex')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return head
}

/** The head of a JPEG of this size, without pixels. */
export const jpegOf = (width: number, height: number): Buffer => {
  const head = Buffer.from(
    'ffd8ffe000104a46494600010100000100010000ffc0001108000000000301220002110103110100ffd9',
    'hex',
  )
  head.writeUInt16BE(height, 25)
  head.writeUInt16BE(width, 27)
  return head
}

/** A folder that is gone with its user. */
export const openFolder = async () => {
  const path = await mkdtemp(join(tmpdir(), 'mason-test-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
