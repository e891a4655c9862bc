import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Check } from '../check-repository.ts'
import { root } from '../source-tree.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Entry = { integrity?: string; license?: string; dev?: boolean; link?: boolean }
const lock = read('package-lock.json')
const entries = Object.entries((JSON.parse(lock) as { packages: Record<string, Entry> }).packages)
  // this package, its workspaces and the links to them are left out
  .filter(([path, { link }]) => path.includes('node_modules/') && !link)
  .map(([path, entry]) => [path.split('node_modules/').at(-1) ?? path, entry] as const)

/** Packages of other platforms, which no registry in use so far has served; `npm run lock -- --hashes` fills in what one serves. */
const withoutHash = [
  ...['android-arm64', 'android-x64', 'darwin-arm64', 'darwin-x64'].map((name) => `@biomejs/cli-${name}`),
  ...['linux-arm64-musl', 'linux-x64-musl', 'win32-arm64', 'win32-x64'].map((name) => `@biomejs/cli-${name}`),
  ...['darwin-arm64', 'darwin-x64', 'linux-arm', 'win32-x64'].map(
    (name) => `@msgpackr-extract/msgpackr-extract-${name}`,
  ),
  ...['android-arm-eabi', 'android-arm64', 'darwin-arm64', 'darwin-x64', 'freebsd-x64'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['linux-arm-gnueabihf', 'linux-arm-musleabihf', 'linux-ppc64-gnu', 'linux-riscv64-gnu'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['linux-riscv64-musl', 'linux-s390x-gnu', 'openharmony-arm64'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['win32-arm64-msvc', 'win32-ia32-msvc', 'win32-x64-msvc'].map((name) => `@oxc-parser/binding-${name}`),
]

/** Of the packages that Mason needs to run. A new one is a decision, not an accident. */
const licenses = [
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'MPL-2.0'],
  ...['(MIT AND Zlib)', '(MIT OR GPL-3.0-or-later)'],
]
/** Its entry has another word for it, or none: by the text of its license. */
const licensesByText: Record<string, string> = {
  duck: 'BSD-2-Clause',
  ...Object.fromEntries(
    withoutHash.filter((name) => name.startsWith('@msgpackr-extract/')).map((name) => [name, 'MIT']),
  ),
}

const images = ['Dockerfile', 'compose.yaml', 'templates/project/compose.yaml'].flatMap((path) =>
  [...read(path).matchAll(/^(?:\s*image: |FROM )(\S+)/gm)].map(([, name = '']) => name),
)
const exactImage =
  /^(node:24\.\d+\.\d+|redis:\d+\.\d+\.\d+|pgvector\/pgvector:\d+\.\d+\.\d+-pg17)-bookworm(-slim)?@sha256:[0-9a-f]{64}$/

/** What the lock file and the images keep to. */
export const supplyChain: readonly Check[] = [
  [
    'a package has no integrity hash, and scripts/checks/supply-chain.ts does not list it',
    () =>
      entries.flatMap(([name, { integrity }]) =>
        integrity?.startsWith('sha512-') || withoutHash.includes(name) ? [] : [name],
      ),
  ],
  [
    'a package is listed as one without a hash, and has one or is gone',
    () =>
      withoutHash.filter(
        (name) => !entries.some(([one, { integrity }]) => one === name && !integrity?.startsWith('sha512-')),
      ),
  ],
  [
    'package-lock.json names the address of a registry, which is a setting of the machine',
    () => lock.match(/"resolved": "(?!console").*/g) ?? [],
  ],
  [
    'a package is under a license that scripts/checks/supply-chain.ts does not list',
    () =>
      entries.flatMap(([name, { license, dev }]) => {
        const found = licensesByText[name] ?? license ?? 'none'
        return dev || licenses.includes(found) ? [] : [`${name}: ${found}`]
      }),
  ],
  [
    'an image is not an exact version with its digest; run npm run pin',
    () => images.filter((name) => name !== 'mason' && !exactImage.test(name)),
  ],
]
