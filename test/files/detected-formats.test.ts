import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { openFileProcess } from '../../src/files/file-process.ts'
import { documentReaders } from '../support/document-readers.ts'
import { openFolder, pdfOf, pngOf, zipOf } from '../support/file-samples.ts'

const binary = (start: string): Buffer => Buffer.concat([Buffer.from(start, 'latin1'), Buffer.alloc(600)])

/** A TIFF as many programs write it: the directory with the width and height comes after the pixels. */
const tiffOf = (width: number, height: number): Buffer => {
  const pixels = 300_000
  const tiff = Buffer.alloc(8 + pixels + 30)
  tiff.write('II*\0', 'latin1')
  tiff.writeUInt32LE(8 + pixels, 4)
  tiff.writeUInt16LE(2, 8 + pixels)
  for (const [n, value] of [width, height].entries()) {
    const at = 10 + pixels + 12 * n
    tiff.writeUInt16LE(256 + n, at)
    tiff.writeUInt16LE(4, at + 2)
    tiff.writeUInt32LE(1, at + 4)
    tiff.writeUInt32LE(value, at + 8)
  }
  return tiff
}

test('the file process recognizes files by their bytes, and text that begins like a binary format is text', async () => {
  await using folder = await openFolder()
  await using process = openFileProcess({
    maxBytes: 450 * 1024 * 1024,
    maxMs: 30_000,
    readers: documentReaders,
  })
  const { signal } = new AbortController()
  const detect = async (bytes: string | Uint8Array): Promise<string> => {
    const path = join(folder.path, 'file')
    await writeFile(path, bytes)
    const reply = await process.run(
      { kind: 'prepare', path, name: 'file', type: '', folder: folder.path },
      signal,
    )
    if ('contents' in reply) return reply.contents.format
    return 'format' in reply ? reply.format : JSON.stringify(reply)
  }
  const files: [format: string, bytes: string | Uint8Array][] = [
    ['pdf', await pdfOf([['Hello']])],
    ['pdf', Buffer.concat([Buffer.from('junk\n'), await pdfOf([['Hello']])])],
    ['zip', await zipOf({ 'word/notes.txt': 'no office document' })],
    ['image', pngOf(640, 480)],
    ['image', binary('\xff\xd8\xff\xe0')],
    ['image', binary('BM')],
    ['image', tiffOf(640, 480)],
    ['ole', binary('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')],
    ['gzip', gzipSync('a,b\n1,2\n')],
    ['rar', binary('Rar!\x1a\x07\x00')],
    ['7z', binary("7z\xbc\xaf'\x1c")],
    ['program', binary('\x7fELF')],
    ['program', binary('MZ')],
    ['media', binary('ID3\x03\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x00')],
    ['media', binary('\x00\x00\x00\x18ftypisom')],
    ['binary', binary('nothing known')],
    ['text', 'BMW,MZ and II* are words'],
    ['text', 'MZ is a word'],
    ['text', 'FORM filled in'],
    ['text', '<?xml version="1.0"?><a/>'],
    ['text', Buffer.from('\ufeffBM in UTF-16', 'utf16le')],
    ['html', '<!doctype html><p>Hello'],
  ]
  const formats: string[] = []
  for (const [, bytes] of files) formats.push(await detect(bytes))
  expect(formats).toEqual(files.map(([format]) => format))
})
