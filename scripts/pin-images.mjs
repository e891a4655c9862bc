// Writes to each image tag of the Dockerfile and the compose files the digest that its registry has for it, by docker. Where
// no image registry can be reached it changes nothing: no other digest is written. Those that are there now come from
// public repositories (docs/decisions/0175): node and redis from docker-library/repo-info, pgvector from its users.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const image = /^(\s*image: |FROM )([a-z0-9./-]+:[\w.-]+)(?:@sha256:[0-9a-f]{64})?(?=\s|$)/gm

const fetchDigest = (name) => {
  const args = ['buildx', 'imagetools', 'inspect', name, '--format', '{{.Manifest.Digest}}']
  const digest = execFileSync('docker', args, { encoding: 'utf8', timeout: 60_000 }).trim()
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`docker gave no digest for ${name}`)
  return digest
}

const folder = process.argv[2] ?? '.'
const pinned = ['Dockerfile', 'compose.yaml', 'templates/project/compose.yaml'].map((file) => {
  const path = join(folder, file)
  const pin = (_whole, before, name) => `${before}${name}@${fetchDigest(name)}`
  return { path, text: readFileSync(path, 'utf8').replace(image, pin) }
})
for (const { path, text } of pinned) writeFileSync(path, text)
