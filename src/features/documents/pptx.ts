import { createDocument } from '../../files/child/formats/document-text.ts'
import { type FileContents, fileBounds, type PrepareJob } from '../../files/protocol/child-protocol.ts'
import { type Archive, listRelatedParts, openArchive, readRelations, readXml } from './archive.ts'

/** Reads the text of each slide and of its notes, in the order of the presentation. A slide's title is its section. */
export const preparePptx = async (job: PrepareJob): Promise<FileContents> => {
  using archive = await openArchive(job.path)
  const all = await listRelatedParts(archive, 'ppt/presentation.xml', 'sldId')
  // a slide may be named any number of times
  const slides = all.slice(0, fileBounds.pages)
  const document = createDocument()
  for (const [index, { path }] of slides.entries()) {
    const { title, lines } = await readSlide(archive, path)
    document.addPage()
    const heading = title || lines[0] || `Slide ${index + 1}`
    document.addSection(heading, 1)
    document.addLine(`# Slide ${index + 1}: ${heading}`)
    for (const line of lines) document.addLine(line)
    for (const line of await readNotes(archive, path)) document.addLine(`Notes: ${line}`)
    document.addLine('')
  }
  const contents = await document.write(job, { format: 'pptx', pages: all.length }, 'it has no slides')
  if (all.length > slides.length)
    contents.notes.push(`only the first ${slides.length} of its ${all.length} slides are read`)
  return contents
}

const readSlide = async (archive: Archive, path: string): Promise<{ title: string; lines: string[] }> => {
  const lines: string[] = []
  let title = ''
  let line = ''
  let inTitle = false
  await readXml(archive, path, {
    open: (name, { type = '' }) => {
      if (name === 'sp') inTitle = false
      if (name === 'ph') inTitle = type === 'title' || type === 'ctrTitle'
      if (name === 'br') line += ' '
    },
    text: (text, element) => {
      if (element === 't') line += text
    },
    close: (name) => {
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
