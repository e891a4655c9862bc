import { defineConfig } from 'mason-runtime'

export default defineConfig({
  tools: ['tools'],
  // defaults; the environment and .env win
  settings: { LOG_LEVEL: 'info' },
})
