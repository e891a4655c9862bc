import { docxParts, paragraph, pdfOf, xlsxParts, zipOf } from '../../../test/support/file-samples.ts'
import { hostileFiles } from '../../../test/support/hostile-files.ts'
import type { HttpInput, Input, RunInput, RunOutcome } from '../input.ts'
import { json } from '../input.ts'

/** Files that hurt their reader: bombs, paths that lead out, scripts, wrong types, names. Each has an entry that says what it is. */
export const files = async (): Promise<Input[]> => {
  const known = (await hostileFiles()).map(([name, bytes, note]): Sample => [name, bytes, note])
  const samples = [...known, ...(await large()), ...(await mislabelled()), ...(await traversals())]
  return [...inRuns(samples), ...names()]
}

type Sample = [name: string, bytes: string | Uint8Array, note: RegExp]
/** Each file has a time limit of its own, and the machine other things to do. */
const runMs = 120_000
/** Large ones have a run of their own: then it says which of them takes its time. */
const perRun = { files: 20, bytes: 1_500_000 }

/** What the state says of a file, and of what was in it. */
const entriesOf = ({ state }: RunOutcome, name: string) => {
  const { documents = {}, tables = {}, other_files = {} } = state?.preprocessed_files ?? {}
  const all = [documents, tables, other_files].flatMap(
    (kind) => Object.entries(kind) as [string, { notes?: string[] }][],
  )
  return {
    own: all.flatMap(([key, entry]) => (key === name ? [entry] : [])),
    inside: all.flatMap(([key, entry]) => (key.startsWith(`${name}/`) ? [entry] : [])),
  }
}

const packed = (samples: readonly Sample[]): Sample[][] => {
  const runs: Sample[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const sample of samples) {
    bytes += sample[1].length
    if (bytes > perRun.bytes || (runs.at(-1)?.length ?? 0) >= perRun.files) {
      runs.push([])
      bytes = sample[1].length
    }
    runs.at(-1)?.push(sample)
  }
  return runs
}

const inRuns = (samples: readonly Sample[]): RunInput[] =>
  packed(samples).map((one, at) => {
    const some = one.map(([name, bytes, note], nr) => ({ name: `${nr}-${name}`, bytes, note }))
    return {
      kind: 'run',
      name: `hostile files ${at}`,
      turns: [
        {
          prompt: 'What is in these?',
          limits: { timeout_ms: runMs },
          files: some.map(({ name, bytes }) => ({
            name,
            type: 'application/octet-stream',
            content_base64: Buffer.from(bytes).toString('base64'),
          })),
        },
      ],
      withinMs: runMs + 20_000,
      parts: some.map(({ name, note }) => ({
        name: `the file ${name}`,
        holds: (outcome) => {
          if (outcome.run.status !== 'completed')
            return `the run is ${outcome.run.status}: ${JSON.stringify(outcome.run.error)}`
          const { own, inside } = entriesOf(outcome, name)
          if (own.length + inside.length === 0)
            return `has no entry; its run ended as ${outcome.run.finish_reason}`
          const leaked = /root:x:0|BEGIN [A-Z ]*PRIVATE KEY/.exec(JSON.stringify([own, inside]))
          if (leaked) return `shows ${leaked[0]}`
          const notes = own.flatMap((entry) => entry.notes ?? []).join('; ')
          return note.test(notes) ? null : `says ${notes.slice(0, 300)}; expected ${note}`
        },
      })),
    }
  })

/** Any note will do, and none. */
const any = /^/

/** What was quadratic, or held in memory whole. */
const large = async (): Promise<Sample[]> => [
  ['rows.html', `<table>${'<tr><td>a<td>b'.repeat(60_000)}</table>`, any],
  ['closed-rows.html', `<table>${'<tr><td>a</td></tr>'.repeat(60_000)}</table>`, any],
  ['spans.html', `<table>${'<tr><td colspan=100000 rowspan=100000>a'.repeat(200)}</table>`, any],
  ['columns.csv', `${'a,'.repeat(100_000)}a\n1\n`, any],
  ['names.json', `[{${Array.from({ length: 100_000 }, (_, n) => `"k${n}":1`).join()}}]`, any],
  ['prototype.json', '[{"__proto__":{"x":1},"constructor":2,"toString":3}]', any],
  ['prototype.csv', '__proto__,constructor,hasOwnProperty\n1,2,3\n', any],
  ['quotes.csv', `a\n"${'""'.repeat(1_000_000)}`, any],
  ['one-line.csv', 'a'.repeat(8_000_000), any],
  ['lines.txt', '\n'.repeat(4_000_000), any],
  ['wide.txt', 'x'.repeat(8_000_000), any],
  ['formula.csv', '=cmd|\' /C calc\'!A0,+1,-1,@SUM(1)\n=HYPERLINK("http://127.0.0.1/"),1,2,3\n', any],
  ['attributes.html', `<p ${'a=b '.repeat(300_000)}>x</p>`, any],
  ['comments.html', `${'<!--'.repeat(300_000)}x`, any],
  ['entities.html', '&amp;'.repeat(500_000), any],
  ['angles.html', '<'.repeat(2_000_000), any],
  ['links.html', '<a href="x">[a](b)'.repeat(60_000), any],
  ['lists.html', '<ul><li>'.repeat(20_000), any],
  ['spaces.html', `<p>${' '.repeat(3_000_000)}x</p>`, any],
  ['stars.html', `<p>${'*_`'.repeat(400_000)}</p>`, any],
  ['styles.docx', await zipOf(docxParts(paragraph('x', 'Heading1').repeat(40_000))), any],
  ['tables.docx', await zipOf(docxParts('<w:tbl><w:tr><w:tc>'.repeat(5000))), any],
  [
    'cells.xlsx',
    await zipOf(xlsxParts({ S: '<row><c r="A1"><f>1+1</f><v>1</v></c></row>'.repeat(50_000) })),
    any,
  ],
  ['strings.xlsx', await zipOf(xlsxParts({ S: '<row><c r="A1" t="s"><v>99999999</v></c></row>' })), any],
  [
    'sheets.xlsx',
    await zipOf(
      xlsxParts(
        Object.fromEntries(
          Array.from({ length: 500 }, (_, n) => [`s${n}`, '<row><c r="A1"><v>1</v></c></row>']),
        ),
      ),
    ),
    any,
  ],
  ['pages.pdf', await pdfOf(Array.from({ length: 300 }, () => ['x'])), any],
  [
    'script.pdf',
    Buffer.from(
      (await pdfOf([['Hello']]))
        .toString('latin1')
        .replace('/Type /Catalog', '/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert(1)) >>'),
      'latin1',
    ),
    any,
  ],
  [
    'loop.pdf',
    '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]/Count 9999999>>endobj\ntrailer<</Root 1 0 R>>',
    /damaged|no text/,
  ],
]

/** Each kind of file under the names of others. */
const mislabelled = async (): Promise<Sample[]> => {
  const contents: Record<string, string | Uint8Array> = {
    pdf: await pdfOf([['Hello']]),
    docx: await zipOf(docxParts(paragraph('Hello'))),
    xlsx: await zipOf(xlsxParts({ S: '<row><c r="A1"><v>1</v></c></row>' })),
    html: '<html><body><script>fetch("http://127.0.0.1")</script><p>Hello</p></body></html>',
    svg: '<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/><script>1</script></svg>',
    csv: 'a,b\n1,2\n',
    elf: Buffer.from(`7f454c46${'00'.repeat(500)}`, 'hex'),
    noise: Buffer.alloc(3000, 0xa7),
  }
  const endings = ['pdf', 'docx', 'xlsx', 'pptx', 'csv', 'json', 'html', 'png', 'zip', 'txt']
  return Object.entries(contents).flatMap(([kind, bytes]) =>
    endings.map((ending): Sample => [`${kind}.as.${ending}`, bytes, any]),
  )
}

const traversals = async (): Promise<Sample[]> =>
  Promise.all(
    [
      '__proto__',
      'constructor',
      '__proto__/x.txt',
      'a/__proto__/b.txt',
      'CON',
      'a'.repeat(5000),
      'a/'.repeat(500).concat('x.txt'),
      '%2e%2e/x.txt',
      '.env',
      'x\u202etxt.exe',
      '$(id).txt',
      '`id`.txt',
      '-rf.txt',
      'a\tb.txt',
      '~/x.txt',
      'C-x.txt',
    ].map(
      async (name, at): Promise<Sample> => [
        `entry-${at}.zip`,
        await zipOf({ [name]: 'Hello', 'b.txt': 'fine' }),
        any,
      ],
    ),
  )

/** Names and addresses of files that a request may not have, or that must do no harm. */
const names = (): HttpInput[] => {
  const odd = [
    ...['../a', '..\\a', '/etc/passwd', 'a//b', 'a/', 'a/../b', './a'],
    ...['a\u0000', 'a\nb', '\ud800', '', 'x'.repeat(256)],
  ]
  const harmless = [
    '__proto__',
    'constructor',
    'toString',
    '.',
    '..',
    '-rf',
    '$(id)',
    '%00',
    'CON',
    'a/b',
    'a\u202eb',
    ' ',
  ]
  const post = (name: string, file: object, status: HttpInput['status']): HttpInput => ({
    kind: 'http',
    name: `a file ${JSON.stringify(name).slice(0, 80)}`,
    as: 'mallory',
    method: 'POST',
    path: '/v1/runs',
    body: json({ prompt: 'Look.', user_id: 'files', files: [file] }),
    status,
    ...(status !== 'handled' && { at: '/files/0' }),
  })
  const content_base64 = 'aGk='
  return [
    ...odd.map((name) => post(name, { name, type: 'text/plain', content_base64 }, [422])),
    ...harmless.map((name) => post(name, { name, type: 'text/plain', content_base64 }, 'handled')),
    ...['a\u0000b', '\ud800', 'x'.repeat(256), ''].map((type) =>
      post(`of type ${type}`, { name: 'a', type, content_base64 }, [422]),
    ),
    ...['!', 'a', '===='].map((text) =>
      post(`of the bytes ${text}`, { name: 'a', type: 't', content_base64: text }, [422]),
    ),
    ...[
      'file:///etc/passwd',
      'ftp://127.0.0.1/',
      'javascript:1',
      'http://',
      'data:text/plain,x',
      'gopher://127.0.0.1',
      'x'.repeat(5000),
    ].map((url) => post(`at ${url}`, { name: 'a', type: 't', url }, [422])),
  ]
}
