import { type ReactNode, useEffect, useRef, useState } from 'react'
import { type Options, toCurl } from '../api.ts'
import { showTime, toPlain } from '../format.ts'
import { toWord, useTexts } from '../i18n/index.ts'
import type { Json } from '../types.ts'

/** Text of others: never HTML, in its own direction, cut where it is very long. */
export const Text = ({ children, most }: { children: string; most?: number }): ReactNode => (
  <bdi className="text">{toPlain(children, most)}</bdi>
)

/** What is wider than the page scrolls by itself, also by keyboard. */
export const Scroll = (props: { label: string; className?: string; children: ReactNode }): ReactNode => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard
  <section className={`scroll ${props.className ?? ''}`} tabIndex={0} aria-label={props.label}>
    {props.children}
  </section>
)

/** A status by word and color. */
export const Status = ({ of }: { of: string }): ReactNode => {
  const { t } = useTexts()
  return (
    <span className="status" data-status={of}>
      {toWord(t, of)}
    </span>
  )
}

export const Time = ({ at }: { at: string | null | undefined }): ReactNode =>
  at ? (
    <time dateTime={at} className="num">
      {showTime(at)}
    </time>
  ) : (
    '–'
  )

const mostShown = 50_000

/** A JSON value as text, cut where it is too large to read; the download has all of it. */
export const JsonText = ({ value, label }: { value: unknown; label: string }): ReactNode => {
  const { t } = useTexts()
  const text = JSON.stringify(value, null, 2) ?? ''
  return (
    <>
      <Scroll label={label} className="json">
        <pre>{toPlain(text, mostShown)}</pre>
      </Scroll>
      {text.length > mostShown && <p role="status">{t.tooLarge}</p>}
    </>
  )
}

const Copy = ({ text, label }: { text: string; label: string }): ReactNode => {
  const { t } = useTexts()
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 2000)
  }
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? t.copied : label}
    </button>
  )
}

export const CopyCurl = ({ path, options }: { path: string; options?: Options }): ReactNode => (
  <Copy text={toCurl(path, options)} label={useTexts().t.copyCurl} />
)

/** Saves the value as a file. */
export const Download = ({ name, value }: { name: string; value: unknown }): ReactNode => {
  const save = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }))
    Object.assign(document.createElement('a'), { href: url, download: `${name}.json` }).click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" onClick={save}>
      {useTexts().t.download}
    </button>
  )
}

/** A modal dialog of the browser: focus stays inside, Escape closes it. */
export const Dialog = (props: { title: string; onClose(): void; children: ReactNode }): ReactNode => {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => ref.current?.showModal(), [])
  return (
    <dialog ref={ref} aria-label={props.title} onClose={props.onClose}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  )
}

/** A button that asks once, and names what it affects. */
export const Confirm = (props: {
  label: string
  question: string
  names: string
  act(): Promise<unknown>
}): ReactNode => {
  const { t } = useTexts()
  const [isOpen, setOpen] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const act = () =>
    props.act().then(
      () => setOpen(false),
      (cause: Error) => setError(cause),
    )
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {props.label}
      </button>
      {isOpen && (
        <Dialog title={props.label} onClose={() => setOpen(false)}>
          <p>{props.question}</p>
          <p>
            <code>{props.names}</code>
          </p>
          {error && <p role="alert">{error.message}</p>}
          <div className="row">
            <button type="button" className="danger" onClick={() => void act()}>
              {t.confirm}
            </button>
            <button type="button" onClick={() => setOpen(false)}>
              {t.keep}
            </button>
          </div>
        </Dialog>
      )}
    </>
  )
}

/** A value in a cell or a list of fields. */
export const Value = ({ of, name = '' }: { of: Json | undefined; name?: string }): ReactNode => {
  const { t } = useTexts()
  if (of === null || of === undefined || of === '') return <span className="quiet">–</span>
  if (typeof of === 'boolean') return of ? t.yes : t.no
  if (typeof of === 'number') return <span className="num">{of}</span>
  if (typeof of === 'string') {
    if (name === 'status') return <Status of={of} />
    return /_at$|^at$/.test(name) ? <Time at={of} /> : <Text most={300}>{of}</Text>
  }
  const isPlain = Array.isArray(of) && of.every((item) => typeof item !== 'object')
  return <Text most={300}>{isPlain ? of.join(', ') : JSON.stringify(of)}</Text>
}
