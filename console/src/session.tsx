import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { ApiError, call, signedOut } from './api.ts'
import { useTexts } from './i18n/index.ts'
import { Loading, Problem } from './parts/states.tsx'

/** Who is signed in, as the server says; the page never holds a token. */
export type Who = {
  auth: 'required' | 'off'
  signed_in: boolean
  problem: { detail: string; remedy: string } | null
  admin: boolean
  roles: string[]
  businesses: string[] | null
  token: { id: string | null; label: string } | null
}

const open: Who = {
  ...{ auth: 'off', signed_in: true, problem: null, admin: true, roles: ['admin'] },
  ...{ businesses: ['default'], token: null },
}

const WhoContext = createContext<Who>(open)
export const useWho = (): Who => useContext(WhoContext)
const useMay = (role: string): boolean => {
  const { admin, roles } = useWho()
  return admin || roles.includes(role) || roles.includes('admin')
}
/** Whether this token may start, answer and end runs. */
export const useMayWrite = (): boolean => useMay('submit')
/** Whether this token may delete. */
export const useMayDelete = (): boolean => useMay('delete')

const path = '/console/session'

const useSignOut = () => {
  const client = useQueryClient()
  return async () => {
    await call(path, { method: 'DELETE' }).catch(() => null)
    client.clear()
    await client.refetchQueries({ queryKey: ['who'] })
  }
}

export const SignOut = (): ReactNode => {
  const { t } = useTexts()
  const { auth } = useWho()
  const signOut = useSignOut()
  return auth === 'required' ? (
    <button type="button" onClick={() => void signOut()}>
      {t.signOut}
    </button>
  ) : null
}

/** Shows its children to who is signed in, the form to all others. */
export const SignedIn = ({ children }: { children: ReactNode }): ReactNode => {
  const client = useQueryClient()
  const [hasEnded, setEnded] = useState(false)
  const who = useQuery({ queryKey: ['who'], queryFn: () => call<Who>(path), staleTime: 60_000 })
  useEffect(() => {
    signedOut.notify = () => {
      setEnded(true)
      void client.invalidateQueries({ queryKey: ['who'] })
    }
  }, [client])
  if (who.isPending) return <Loading />
  if (who.isError)
    return (
      <main className="sign-in">
        <Problem error={who.error} onRetry={() => void who.refetch()} />
      </main>
    )
  if (who.data.signed_in) return <WhoContext value={who.data}>{children}</WhoContext>
  return <SignInForm who={who.data} hasEnded={hasEnded} onDone={() => setEnded(false)} />
}

const SignInForm = ({
  who,
  hasEnded,
  onDone,
}: {
  who: Who
  hasEnded: boolean
  onDone(): void
}): ReactNode => {
  const { t } = useTexts()
  const client = useQueryClient()
  const [error, setError] = useState<Error | null>(null)
  const exchange = async (body: { token: string } | { code: string }) => {
    setError(null)
    try {
      const next = await call<Who>(path, { method: 'POST', body })
      client.clear()
      client.setQueryData(['who'], next)
      onDone()
    } catch (cause) {
      setError(cause as Error)
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, a code is good once
  useEffect(() => {
    // `mason console` opens the page with a code behind #, which no server sees; it leaves the address at once
    const code = new URLSearchParams(location.hash.slice(1)).get('code')
    if (code === null) return
    history.replaceState(null, '', location.pathname + location.search)
    void exchange({ code })
  }, [])
  if (who.problem)
    return (
      <main className="sign-in">
        <h1>{t.cannotSignIn}</h1>
        <Problem error={new ApiError(403, 'forbidden', who.problem.detail, who.problem.remedy)} />
      </main>
    )
  return (
    <main className="sign-in">
      <h1>Mason</h1>
      {hasEnded && <p role="status">{t.sessionEnded}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void exchange({ token: String(new FormData(event.currentTarget).get('token')).trim() })
        }}
      >
        <label>
          {t.token}
          <input name="token" type="password" required autoComplete="off" spellCheck={false} />
        </label>
        <p className="help">{t.tokenHelp}</p>
        <button type="submit" className="main">
          {t.signIn}
        </button>
      </form>
      {error && <Problem error={error} />}
    </main>
  )
}
