// Adds the entries of optional platform packages that a registry mirror left out of package-lock.json: `npm ci`
// refuses a lock file without them, here and for everyone who clones. Run it after every change of dependencies.
// `--hashes` also asks the registry in use for the integrity hash of each entry that has none; no other hash is written.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const path = process.argv.slice(2).find((argument) => !argument.startsWith('--')) ?? 'package-lock.json'
const lock = JSON.parse(readFileSync(path, 'utf8'))
const packages = lock.packages
const systems = [
  'darwin',
  'linux',
  'win32',
  'android',
  'freebsd',
  'openharmony',
  'openbsd',
  'netbsd',
  'sunos',
  'aix',
]
const processors = ['arm64', 'x64', 'ia32', 'riscv64', 's390x', 'ppc64', 'loong64', 'mips64el', 'arm']

/** Whether the package at `from` finds `name` in its own node_modules or in one above. */
const isThere = (from, name) => {
  for (let folder = from; ; ) {
    if (packages[`${folder ? `${folder}/` : ''}node_modules/${name}`]) return true
    if (folder === '') return false
    folder = folder.includes('/node_modules/') ? folder.slice(0, folder.lastIndexOf('/node_modules/')) : ''
  }
}

const entryFor = (name, range, dev) => {
  const base = name.split('/').at(-1)
  const os = systems.find((system) => base.includes(system))
  const version = /\d+\.\d+\.\d+\S*/.exec(range)?.[0]
  if (!os || !version) return null
  const cpu = processors.find((processor) => new RegExp(`(^|-)${processor}(-|$)`).test(base))
  const libc = base.includes('musl') ? 'musl' : os === 'linux' && base.includes('gnu') ? 'glibc' : null
  return {
    version,
    ...(cpu && { cpu: [cpu] }),
    ...(dev && { dev: true }),
    ...(libc && { libc: [libc] }),
    optional: true,
    os: [os],
  }
}

let added = 0
for (const [from, { optionalDependencies = {}, dev }] of Object.entries(packages))
  for (const [name, range] of Object.entries(optionalDependencies)) {
    if (isThere(from, name)) continue
    const entry = entryFor(name, range, dev)
    if (!entry) console.warn(`left alone: ${name}@${range}, wanted by ${from || 'this project'}`)
    else {
      packages[`node_modules/${name}`] = entry
      added++
    }
  }

const fetchHash = (name, version) => {
  try {
    const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 }
    const hash = execFileSync('npm', ['view', `${name}@${version}`, 'dist.integrity'], options).trim()
    return /^sha512-[A-Za-z0-9+/]{86}==$/.test(hash) ? hash : null
  } catch {
    return null
  }
}

let filled = 0
if (process.argv.includes('--hashes'))
  for (const [from, entry] of Object.entries(packages)) {
    if (from === '' || entry.integrity || entry.link) continue
    const name = entry.name ?? from.split('node_modules/').at(-1)
    const hash = fetchHash(name, entry.version)
    if (hash === null)
      console.warn(`without a hash: ${name}@${entry.version}, which the registry in use does not serve`)
    else {
      entry.integrity = hash
      filled++
    }
  }

lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en')))
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${path}: added ${added} optional packages and ${filled} hashes`)
