import { expect, test } from 'vitest'
import { listTouchedTables, toStatements } from '../../../src/infra/database/own-migrations.ts'

test('the tables of a script are those that it makes, opens or writes, and not those that it reads', () => {
  const sql = `CREATE TABLE a (); INSERT INTO b SELECT FROM x ON CONFLICT DO UPDATE SET y = 1;
    UPDATE c SET z = 1; DELETE FROM d; SELECT FROM e FOR UPDATE OF e -- INSERT INTO f
    ; create table if not exists mason.g (h text references i on update cascade on delete restrict);
    alter table only "j" enable row level security; update k as l set m = 1; truncate n;
    CREATE POLICY business ON o FOR UPDATE TO mason_api USING (true); GRANT SELECT, UPDATE ON p TO mason_api;
    GRANT EXECUTE ON FUNCTION q() TO mason_api; CREATE TRIGGER r AFTER UPDATE OF s OR DELETE ON t EXECUTE FUNCTION u();
    CREATE FUNCTION v() RETURNS void LANGUAGE sql AS $body$ DELETE FROM w $body$; /* DROP TABLE x */`
  expect(listTouchedTables(toStatements(sql))).toEqual(['a', 'b', 'c', 'd', 'g', 'j', 'k', 'n', 'o', 'p'])
})

test('lists, spaces, quoted names and literals hide no table and make none up', () => {
  const sql = String.raw`SELECT '--', e'it\'s /*', "de--f"; DROP TABLE a, mason.b; GRANT SELECT ON c, "mason"."d" TO mason_api;
    TRUNCATE e, ONLY f; DROP POLICY IF EXISTS business ON g; ALTER  TABLE
    h ADD i int; CREATE UNLOGGED TABLE j (); MERGE INTO k USING l ON true WHEN MATCHED THEN DELETE; LOCK TABLE m, n;
    COMMENT ON TABLE o IS 'delete from the list'; DELETE  FROM p; $$ an unclosed body; DROP TABLE q`
  expect(listTouchedTables(toStatements(sql))).toEqual([...'abcdefghjkmnp'])
})
