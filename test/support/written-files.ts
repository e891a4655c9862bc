import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The files of test/files/written, made by other programs, and what must become of each. */

export const writtenFolder = join(import.meta.dirname, '..', 'files', 'written')

/** All files of the folder but the script that made them. */
export const listWrittenFiles = (): string[] =>
  readdirSync(writtenFolder)
    .filter((name) => name !== 'make.sh')
    .toSorted()

/**
 * `format` is what the bytes are. Of a file that is read: a `fact` that its text or rows hold, and a table's rows. Of
 * every other, and where something must be said: what a `note` says. `parts`: the files out of it.
 */
export type Expectation = { format: string; fact?: string; rows?: number; note?: RegExp; parts?: string[] }

const grant = 'The council of Ulm set aside 48213 euros'
const cities = (format: string, note?: RegExp): Expectation => ({
  ...{ format, fact: 'Graz', rows: 4 },
  ...(note && { note }),
})
const damaged = /^it is damaged or incomplete \(/
const encrypted = /^it is encrypted with a password/
const image: Expectation = { format: 'image' }

export const expectations: Readonly<Record<string, Expectation>> = {
  'blank.docx': { format: 'docx', note: /^it has no text/ },
  'blank.odt': { format: 'odt', note: /^it has no text/ },
  'bruecke-latin1.txt': { format: 'text', fact: 'Euro für die Brücke', note: /windows-1252/ },
  'cities-excel.csv': cities('csv'),
  'cities-gnumeric.csv': cities('csv'),
  'cities-gnumeric.xlsx': cities('xlsx'),
  'cities-iconv-utf16.csv': cities('csv'),
  'cities-semicolon.csv': cities('csv', /^delimiter: ;$/),
  'cities-table.html': { format: 'html', fact: '| Graz | 292000 |' },
  'cities-tabs.tsv': cities('csv'),
  'cities-utf16.csv': cities('csv'),
  'cities.csv.gz': { format: 'gzip', note: /^gzip files are not opened; unpack it/ },
  'cities.json': cities('json'),
  'cities.ndjson': cities('ndjson'),
  'cities.ods': { format: 'ods', note: /^ODS spreadsheets are not opened; save it as XLSX/ },
  'cities.pdf': { format: 'pdf', fact: 'Graz 292000' },
  'cities.xls': { format: 'ole', note: /^it is an old Excel workbook \(XLS\); save it as XLSX/ },
  'cities.xlsx': cities('xlsx'),
  'empty.csv': { format: 'empty', note: /^it is empty/ },
  'empty.docx': { format: 'empty', note: /^it is empty/ },
  'encrypted.docx': { format: 'ole', note: encrypted },
  'encrypted.odt': { format: 'odt', note: encrypted },
  'encrypted.pdf': { format: 'pdf', note: encrypted },
  'encrypted.xlsx': { format: 'ole', note: encrypted },
  'encrypted.zip': { format: 'zip', note: encrypted },
  'files.7z': { format: '7z', note: /^7z archives are not opened; pack it as ZIP/ },
  'files.zip': { format: 'zip', parts: ['report.md', 'cities-excel.csv'] },
  'gs.pdf': { format: 'pdf', fact: grant },
  'notes-pandoc.docx': { format: 'docx', fact: 'Eleven members voted' },
  'notes-pandoc.odt': { format: 'odt', fact: 'The council ( Eleven members voted. ) met' },
  'notes.docx': { format: 'docx', fact: '2.  Then the station' },
  'notes.odt': { format: 'odt', fact: 'Then the station' },
  'really-a-pdf.docx': { format: 'pdf', fact: grant, note: /it is a PDF, although .* a DOCX document/ },
  'really-a-picture.pdf': { format: 'image', note: /it is an image, although .* a PDF/ },
  'really-a-workbook.csv': cities('xlsx', /it is an XLSX workbook, although .* a CSV table/),
  'report-linearized.pdf': { format: 'pdf', fact: grant, note: /^page 1 has no text$/ },
  'report-pandoc.docx': { format: 'docx', fact: 'set aside **48213 euros**' },
  'report-pandoc.html': { format: 'html', fact: 'set aside **48213 euros**' },
  'report-pandoc.json': { format: 'json', fact: 'Budget', rows: 6 },
  'report-pandoc.odt': { format: 'odt', fact: grant },
  'report-table.pdf': { format: 'pdf', fact: 'Basel 178000 51500', note: /^page 1 has no text$/ },
  'report.doc': { format: 'ole', note: /^it is an old Word document \(DOC\); save it as DOCX/ },
  'report.docx': { format: 'docx', fact: '| Basel | 178000 | 51500 |' },
  'report.epub': { format: 'epub', note: /^EPUB books are not opened; save it as PDF/ },
  'report.md': { format: 'markdown', fact: '| Basel | 178000 |' },
  'report.odt': { format: 'odt', fact: '| Basel | 178000 | 51500 |' },
  'report.rst': { format: 'text', fact: 'Basel 178000' },
  'report.rtf': { format: 'rtf', note: /^RTF documents are not opened; save it as DOCX/ },
  'scan.gif': image,
  'scan.jpg': image,
  'scan.png': image,
  'scan.tiff': image,
  'scan.webp': image,
  'scanned-fax.pdf': { format: 'pdf', note: /^page 1 is an image without text/, parts: ['page 1.png'] },
  'scanned-page.pdf': { format: 'pdf', note: /^page 1 is an image without text/, parts: ['page 1.png'] },
  'scanned-stencil.pdf': { format: 'pdf', note: /^page 1 is an image without text/, parts: ['page 1.png'] },
  'short.docx': { format: 'docx', fact: grant },
  'short.html': { format: 'html', fact: grant },
  'short.odt': { format: 'odt', fact: grant },
  'slides-pandoc.pptx': { format: 'pptx', fact: grant },
  'slides.odp': { format: 'odp', fact: grant },
  'slides.pdf': { format: 'pdf', fact: grant },
  'slides.pptx': { format: 'pptx', fact: grant },
  'text-and-scan.pdf': {
    ...{ format: 'pdf', fact: grant },
    ...{ note: /^page 3 is an image without text, .*; page 1 has no text$/, parts: ['page 3.png'] },
  },
  'truncated.docx': { format: 'zip', note: damaged },
  'truncated.pdf': { format: 'pdf', note: damaged },
  'truncated.xlsx': { format: 'zip', note: damaged },
  '予算-sjis.txt': { format: 'text', fact: '48213ユーロの予算を決めた。', note: /shift_jis/ },
  '城市-gbk.csv': { format: 'csv', fact: '巴塞尔', rows: 3, note: /gb18030/ },
  '城市人口.xlsx': { format: 'xlsx', fact: '巴塞尔', rows: 3 },
  '報告-big5.txt': { format: 'text', fact: '市議會撥款四萬八千歐元。', note: /big5/ },
  '报告-gb18030.html': { format: 'html', fact: '自行车桥拨款48213欧元', note: /gb18030/ },
  '报告-gbk.txt': { format: 'text', fact: '自行车桥拨款48213欧元', note: /gb18030/ },
  '预算.json': { format: 'json', fact: 'Graz', rows: 4 },
  '预算报告.docx': { format: 'docx', fact: '| 巴塞尔 | 178000 |' },
  '预算报告.odt': { format: 'odt', fact: '| 巴塞尔 | 178000 |' },
  '预算报告.pdf': { format: 'pdf', fact: '巴塞尔 178000', note: /^page 1 has no text$/ },
}
