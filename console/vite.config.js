import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const outDir = join(import.meta.dirname, '..', 'dist', 'console')

/** Compressed once, here: the server sends these bytes. */
const compress = {
  name: 'compress',
  closeBundle() {
    const folder = join(outDir, 'assets')
    for (const file of readdirSync(folder)) {
      const path = join(folder, file)
      const bytes = readFileSync(path)
      writeFileSync(`${path}.br`, brotliCompressSync(bytes))
      writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
    }
  },
}

export default defineConfig({
  root: import.meta.dirname,
  // the server puts its own base in front of ./assets
  base: './',
  plugins: [react(), compress],
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    // a data: address in a style would break the policy
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
})
