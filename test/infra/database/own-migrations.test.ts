import { expect, test } from 'vitest'
import { listTouchedTables } from '../../../src/infra/database/own-migrations.ts'

test('the tables of a script are those that it makes, opens or writes, and not those that it reads', () => {
  const sql = `CREATE TABLE a (); INSERT INTO b SELECT FROM x ON CONFLICT DO UPDATE SET y = 1;
    UPDATE c SET z = 1; DELETE FROM d; SELECT FROM e FOR UPDATE OF e -- INSERT INTO f
    ; create table if not exists mason.g (h text references i on update cascade on delete restrict);
    alter table only "j" enable row level security; update k as l set m = 1; truncate n;
    CREATE POLICY business ON o FOR UPDATE TO mason_api USING (true); GRANT SELECT, UPDATE ON p TO mason_api;
    GRANT EXECUTE ON FUNCTION q() TO mason_api; CREATE TRIGGER r AFTER UPDATE OF s OR DELETE ON t EXECUTE FUNCTION u();
    CREATE FUNCTION v() RETURNS void LANGUAGE sql AS $body$ DELETE FROM w $body$; /* DROP TABLE x */`
  expect(listTouchedTables(sql)).toEqual(['a', 'b', 'c', 'd', 'g', 'j', 'k', 'n', 'o', 'p'])
})
