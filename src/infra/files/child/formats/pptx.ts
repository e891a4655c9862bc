import type { Found, PrepareJob } from '../protocol.ts'
import { type Archive, openArchive, readRelations, readXml } from './archive.ts'
import { createDocument, cutNote, requireText } from './lines.ts'

/** The text of each slide, in the order they are shown, and of its notes; the slide's title is its section. */
export const preparePptx = async (job: PrepareJob): Promise<Found> => {
  const archive = await openArchive(job.path)
  try {
    const slides = await slidesOf(archive)
    const document = createDocument()
    for (const [index, slide] of slides.entries()) {
      const { title, lines } = await readSlide(archive, slide)
      document.addPage()
      const shown = title || lines[0] || `Slide ${index + 1}`
      document.addSection(shown, 1)
      document.addLine(`# Slide ${index + 1}: ${shown}`)
      for (const line of lines) document.addLine(line)
      for (const line of await notesOf(archive, slide)) document.addLine(`Notes: ${line}`)
      document.addLine('')
    }
    requireText(document, 'it has no slides')
    return {
      format: 'pptx',
      document: await document.write(job, null, slides.length),
      notes: cutNote(document),
    }
  } finally {
    archive.close()
  }
}

const slidesOf = async (archive: Archive): Promise<string[]> => {
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
  let ofTitle = false
  await readXml(archive, path, {
    open: (name, { type = '' }) => {
      if (name === 'sp') ofTitle = false
      if (name === 'ph') ofTitle = type === 'title' || type === 'ctrTitle'
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
      if (ofTitle && title === '') title = line.trim()
      else lines.push(line.trim())
      line = ''
    },
  })
  return { title, lines }
}

const notesOf = async (archive: Archive, slide: string): Promise<string[]> => {
  const relations = await readRelations(archive, slide)
  const path = [...relations.values()].find((target) => target.includes('/notesSlides/'))
  if (path === undefined) return []
  const { lines } = await readSlide(archive, path)
  return lines.filter((line) => !/^\d+$/.test(line))
}
