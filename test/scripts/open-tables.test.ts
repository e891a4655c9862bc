import { expect, test } from 'vitest'
import { listOpenTables } from '../../scripts/source-tree.ts'

const table = 'CREATE TABLE notes (\n  tenant text NOT NULL\n);\n'
const rows = 'ALTER TABLE notes ENABLE ROW LEVEL SECURITY;\nALTER TABLE notes FORCE ROW LEVEL SECURITY;\n'
const policy = 'CREATE POLICY worker ON notes TO mason_worker USING (true);\n'
const grant = 'GRANT SELECT ON TABLE notes TO mason_worker;\n'

test('a table without row-level security, policy or grants is named with what it has not', () => {
  const remedy = 'add it to the migration: docs/features.md#migrations'
  expect(listOpenTables(table + rows + policy + grant)).toEqual([])
  expect(listOpenTables(table + rows + policy)).toEqual([`notes has no grant; ${remedy}`])
  expect(listOpenTables(table + policy + grant)).toEqual([
    `notes has no ENABLE ROW LEVEL SECURITY, no FORCE ROW LEVEL SECURITY; ${remedy}`,
  ])
  const served = 'GRANT INSERT, UPDATE (tenant) ON TABLE notes TO mason_admin;\n'
  expect(listOpenTables(table + rows + policy + grant + served)).toEqual([
    `notes has no GRANT INSERT TO mason_worker, as mason_admin has, no GRANT UPDATE (tenant) TO mason_worker, as mason_admin has; ${remedy}`,
  ])
  const worker = 'GRANT INSERT, UPDATE ON TABLE notes TO mason_worker;\n'
  expect(listOpenTables(table + rows + policy + worker + served)).toEqual([])
  expect(listOpenTables(table + rows + grant.replace('notes', 'notes_of_others'))).toEqual([
    `notes has no policy, no grant; ${remedy}`,
  ])
})
