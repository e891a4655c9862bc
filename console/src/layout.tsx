import { Outlet, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { type Language, languages, useTexts } from './i18n/index.ts'
import { navigation } from './navigation.ts'
import { FindId } from './parts/find-id.tsx'
import { To } from './parts/link.tsx'
import { useChanges } from './parts/more.tsx'
import { Guard } from './parts/states.tsx'
import { useBusiness, useParams } from './router.tsx'
import { SignOut, useWho } from './session.tsx'
import { applyTheme, readTheme, type Theme, themes } from './theme.ts'

const Navigation = (): ReactNode => {
  const { t } = useTexts()
  const { admin } = useWho()
  return (
    <nav aria-label={t.nav} className="pages">
      {navigation
        .filter((group) => admin || !group.isForAdmins)
        .map((group) => (
          <section key={group.title}>
            <h2>{t[group.title]}</h2>
            <ul>
              {group.pages.map(([page, text]) => (
                <li key={page}>
                  <To page={page}>{t[text]}</To>
                </li>
              ))}
            </ul>
          </section>
        ))}
    </nav>
  )
}

const Business = (): ReactNode => {
  const { t } = useTexts()
  const { businesses } = useWho()
  const business = useBusiness()
  const navigate = useNavigate()
  useEffect(() => localStorage.setItem('mason-business', business), [business])
  const go = (next: string) => next && void navigate({ to: `/${encodeURIComponent(next)}/runs` as never })
  if (businesses?.length === 1 && businesses[0] === business)
    return (
      <span className="business">
        {t.business} <b>{business}</b>
      </span>
    )
  return (
    <form
      className="business"
      onSubmit={(event) => {
        event.preventDefault()
        go(String(new FormData(event.currentTarget).get('business')).trim())
      }}
    >
      <label>
        {t.business}{' '}
        <input key={business} name="business" defaultValue={business} size={12} spellCheck={false} />
      </label>
    </form>
  )
}

const Settings = (): ReactNode => {
  const { t, language, choose } = useTexts()
  const [theme, setTheme] = useState<Theme>(readTheme)
  return (
    <>
      <select
        aria-label={t.language}
        value={language}
        onChange={(event) => choose(event.target.value as Language)}
      >
        {Object.entries(languages).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      <select
        aria-label={t.theme}
        value={theme}
        onChange={(event) => {
          setTheme(event.target.value as Theme)
          applyTheme(event.target.value as Theme)
        }}
      >
        {themes.map((name) => (
          <option key={name} value={name}>
            {t[name]}
          </option>
        ))}
      </select>
    </>
  )
}

/** The frame of every page: who and where, all pages, and the page. */
export const Layout = (): ReactNode => {
  const { t } = useTexts()
  const { auth, token } = useWho()
  const { business, run } = useParams()
  // the page of a run has the stream of that run
  useChanges(business ?? '', business !== undefined && run === undefined)
  return (
    <>
      <a className="skip" href="#content">
        {t.skip}
      </a>
      <header className="top">
        <button type="button" className="menu" popoverTarget="menu">
          {t.menu}
        </button>
        <b className="brand">Mason</b>
        <Business />
        <FindId />
        <span className="grow" />
        <Settings />
        {token && <span className="quiet">{token.label}</span>}
        <SignOut />
      </header>
      {auth === 'off' && <p className="notice">{t.authOff}</p>}
      <div className="frame">
        <div id="menu" popover="auto" className="drawer">
          <Navigation />
        </div>
        <div className="side">
          <Navigation />
        </div>
        <main id="content" tabIndex={-1}>
          <Guard message={t.crashed}>
            <Outlet />
          </Guard>
        </main>
      </div>
    </>
  )
}
