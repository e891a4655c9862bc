import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApp } from '../src/app/http/app.ts'
import { createFakeRuntime } from '../test/support/fake-runtime.ts'
import { listRoutes } from '../test/support/openapi.ts'
import { root } from './source-tree.ts'

const path = join(root, 'docs/roles.md')
const mark = '<!-- routes: npm run roles -->\n'

/** `docs/roles.md` as it is, and as the routes of the server say. */
export const compareRoleTable = async (): Promise<{ page: string; expected: string }> => {
  const app = await createApp({ runtime: createFakeRuntime().runtime, auth: 'required', adminToken: 'x' })
  const routes = listRoutes((await app.inject('/openapi.json')).json())
  await app.close()
  const page = readFileSync(path, 'utf8')
  const [text = ''] = page.split(mark)
  const roles = [...new Set(routes.flatMap(({ role }) => role ?? []))].filter((role) => role !== 'operator')
  const unsaid = roles.find((role) => !text.includes(`| \`${role}\` |`))
  if (unsaid)
    throw new Error(`the first table of docs/roles.md does not say whom the role "${unsaid}" is for`)
  const operators = routes.filter(({ role }) => role === 'operator')
  const others = operators.filter((route) => !route.path.startsWith('/admin/v1/'))
  if (others.length > 0) throw new Error(`${others[0]?.path} is a route of operators outside of /admin/v1`)
  const rows = [...roles, null].flatMap((role) =>
    routes
      .filter((route) => route.role === role)
      .map(
        (route) =>
          `| ${role ? `\`${role}\`` : 'no token'} | \`${route.method} ${route.path}\` | ${route.summary} |`,
      ),
  )
  const table = [
    '| role | route | what |',
    '|---|---|---|',
    ...rows,
    `| admin token | \`/admin/v1\` | All ${operators.length} routes |`,
    '',
  ]
  return { page, expected: text + mark + table.join('\n') }
}

/** `npm run roles` writes the table of docs/roles.md. */
if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(path, (await compareRoleTable()).expected)
