import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { type ReactNode, StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api.ts'
import './app.css'
import { type Language, readLanguage, TextsContext, toTexts } from './i18n/index.ts'
import { router } from './router.tsx'
import { SignedIn } from './session.tsx'
import { applyTheme, readTheme } from './theme.ts'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      // only what may be gone the next time
      retry: (count, error) =>
        count < 5 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      retryDelay: (count) => Math.min(500 * 2 ** count, 5000),
    },
  },
})

const App = (): ReactNode => {
  const [language, setLanguage] = useState<Language>(readLanguage)
  useEffect(() => {
    document.documentElement.lang = language
    localStorage.setItem('mason-language', language)
  }, [language])
  return (
    <TextsContext value={{ t: toTexts(language), language, choose: setLanguage }}>
      <QueryClientProvider client={client}>
        <SignedIn>
          <RouterProvider router={router} />
        </SignedIn>
      </QueryClientProvider>
    </TextsContext>
  )
}

applyTheme(readTheme())
createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
