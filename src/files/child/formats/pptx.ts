import type { FileContents, PrepareJob } from '../../protocol/child-protocol.ts'
import { type Archive, openArchive, readRelations, readXml } from './archive.ts'
import { createDocument, requireText } from './document-text.ts'

/** Reads the text of each slide and of its notes, in the order of the presentation. A slide's title is its section. */
export const preparePptx = async (job: PrepareJob): Promise<FileContents> => {
  const archive = await openArchive(job.path)
  try {
    const slides = await listSlides(archive)
    const document = createDocument()
    for (const [index, slide] of slides.entries()) {
      const { title, lines } = await readSlide(archive, slide)
      document.addPage()
      const heading = title || lines[0] || `Slide ${index + 1}`
      document.addSection(heading, 1)
      document.addLine(`# Slide ${index + 1}: ${heading}`)
      for (const line of lines) document.addLine(line)
      for (const line of await readNotes(archive, slide)) document.addLine(`Notes: ${line}`)
      document.addLine('')
    }
    requireText(document, 'it has no slides')
    return await document.write(job, 'pptx', null, slides.length)
  } finally {
    archive.close()
  }
}

const listSlides = async (archive: Archive): Promise<string[]> => {
  const relations = await readRelations(archive, 'ppt/presentation.xml')
  const slides: string[] = []
  await readXml(archive, 'ppt/presentation.xml', {
    open: (name, attributes) => {
      const path = name === 'sldId' ? relations.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined && archive.entry(path)) slides.push(path)
    },
  })
  return slides
}

const readSlide = async (archive: Archive, path: string): Promise<{ title: string; lines: string[] }> => {
  const lines: string[] = []
  let title = ''
  let line = ''
  let inText = false
  let inTitle = false
  await readXml(archive, path, {
    open: (name, { type = '' }) => {
      if (name === 'sp') inTitle = false
      if (name === 'ph') inTitle = type === 'title' || type === 'ctrTitle'
      if (name === 't') inText = true
      if (name === 'br') line += ' '
    },
    text: (text) => {
      if (inText) line += text
    },
    close: (name) => {
      if (name === 't') inText = false
      if (name === 'tc') line += ' | '
      if ((name !== 'p' && name !== 'tr') || line.trim() === '') return
      if (inTitle && title === '') title = line.trim()
      else lines.push(line.trim())
      line = ''
    },
  })
  return { title, lines }
}

const readNotes = async (archive: Archive, slide: string): Promise<string[]> => {
  const relations = await readRelations(archive, slide)
  const path = [...relations.values()].find((target) => target.includes('/notesSlides/'))
  if (path === undefined) return []
  const { lines } = await readSlide(archive, path)
  return lines.filter((line) => !/^\d+$/.test(line))
}
