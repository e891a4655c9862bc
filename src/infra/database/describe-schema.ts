import type { MigrationTarget } from './migration.ts'

/** A table, function, sequence or role that migrations made, with the statements that would make it again. */
export type SchemaObject = {
  kind: 'role' | 'schema' | 'sequence' | 'function' | 'table'
  name: string
  sql: string
}

const rights = `string_agg(privilege_type, ', ' ORDER BY privilege_type)`
/** What others than the owner may do. */
const toGrants = (object: string, acl: string, owner: string): string => `ARRAY(
  SELECT format('GRANT %s ON ${object} %s TO %s', ${rights}, name, grantee::regrole)
  FROM aclexplode(${acl}) WHERE grantee NOT IN (0, ${owner}) GROUP BY grantee ORDER BY grantee::regrole::text)`

// rows that were there before a constraint hold it too
const constraintText = `regexp_replace(pg_get_constraintdef(k.oid), ' NOT VALID$', '')`
const isOfColumn = `k.contype = 'c' AND k.conkey = ARRAY[a.attnum] AND k.conname = name || '_' || a.attname || '_check'`

const tables = `SELECT 'table' AS kind, name, 'CREATE TABLE ' || name AS head,
  ARRAY(
    SELECT concat(a.attname, ' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' NOT NULL' END,
      CASE WHEN a.attidentity <> '' THEN ' GENERATED AS IDENTITY (' || a.attidentity::text || ')' END,
      CASE WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
        ELSE ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END,
      (SELECT ' ' || ${constraintText} FROM pg_constraint k WHERE k.conrelid = c.oid AND ${isOfColumn}),
      CASE WHEN a.attstorage <> t.typstorage THEN ' STORAGE ' || a.attstorage::text END)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname)
  || ARRAY(
    SELECT 'CONSTRAINT ' || k.conname || ' ' || ${constraintText} FROM pg_constraint k
    WHERE k.conrelid = c.oid AND k.contype <> 'n' AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND ${isOfColumn})
    ORDER BY k.conname) AS parts,
  ' WITH (' || array_to_string(c.reloptions, ', ') || ')' AS tail,
  ARRAY(SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i
    WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
    ORDER BY i.indexrelid::regclass::text)
  || CASE WHEN c.relrowsecurity THEN ARRAY['ALTER TABLE ' || name || ' ENABLE ROW LEVEL SECURITY'] END
  || CASE WHEN c.relforcerowsecurity THEN ARRAY['ALTER TABLE ' || name || ' FORCE ROW LEVEL SECURITY'] END
  || ARRAY(SELECT concat('CREATE POLICY ', p.polname, ' ON ', name, CASE WHEN NOT p.polpermissive THEN ' AS RESTRICTIVE' END,
      CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' END,
      ' TO ' || (SELECT string_agg(r::regrole::text, ', ' ORDER BY r::regrole::text) FROM unnest(p.polroles) AS r),
      ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
    FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY p.polname)
  || ${toGrants('TABLE', 'c.relacl', 'c.relowner')}
  || ARRAY(SELECT format('GRANT %s (%s) ON TABLE %s TO %s', privilege_type, string_agg(attname, ', ' ORDER BY attname), name, grantee::regrole)
    FROM (SELECT a.attname, (aclexplode(a.attacl)).* FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped) AS g
    WHERE grantee <> c.relowner GROUP BY grantee, privilege_type ORDER BY grantee::regrole::text, privilege_type)
  || ARRAY(SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal ORDER BY t.tgname) AS statements
FROM pg_class c, LATERAL (SELECT c.relname::text AS name) AS n
WHERE c.relnamespace = 'mason'::regnamespace AND c.relkind NOT IN ('i', 'S', 't', 'c') AND name <> 'migrations'`

const functions = `SELECT 'function', name, rtrim(pg_get_functiondef(p.oid), E'\\n'), NULL, NULL,
  CASE WHEN NOT EXISTS (SELECT FROM aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) WHERE grantee = 0)
    THEN ARRAY['REVOKE EXECUTE ON FUNCTION ' || name || ' FROM PUBLIC'] END
  || ${toGrants('FUNCTION', 'p.proacl', 'p.proowner')}
FROM pg_proc p, LATERAL (SELECT p.oid::regprocedure::text AS name) AS n WHERE p.pronamespace = 'mason'::regnamespace AND p.prokind <> 'a'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`

const others = `SELECT 'sequence', name, 'CREATE SEQUENCE ' || name, NULL, NULL, ${toGrants('SEQUENCE', 'c.relacl', 'c.relowner')}
FROM pg_class c, LATERAL (SELECT c.relname::text AS name) AS n WHERE c.relnamespace = 'mason'::regnamespace AND c.relkind = 'S'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')
UNION ALL SELECT 'schema', name, 'CREATE SCHEMA ' || name, NULL, NULL, ${toGrants('SCHEMA', 's.nspacl', 's.nspowner')}
FROM pg_namespace s, LATERAL (SELECT s.nspname::text AS name) AS n WHERE name = 'mason'
UNION ALL SELECT 'role', r.rolname::text, concat('CREATE ROLE ', r.rolname, CASE WHEN r.rolcanlogin THEN ' LOGIN' END,
  CASE WHEN r.rolsuper THEN ' SUPERUSER' END, CASE WHEN r.rolbypassrls THEN ' BYPASSRLS' END), NULL, NULL, NULL
FROM pg_roles r WHERE r.oid IN (SELECT unnest(polroles) FROM pg_policy)`

/** All that migrations made, sorted by kind and name: equal for equal schemas, whatever the order of columns. Sets the search path. */
export const describeSchema = async (target: MigrationTarget): Promise<SchemaObject[]> => {
  await target.run('SET search_path = mason, public')
  const rows = await target.query(
    `SELECT * FROM (${tables} UNION ALL ${functions} UNION ALL ${others}) AS o ORDER BY kind, name COLLATE "C"`,
  )
  return rows.map((row) => {
    const { kind, name, head, parts, tail, statements } = row as Pick<SchemaObject, 'kind' | 'name'> & {
      head: string
      parts: string[] | null
      tail: string | null
      statements: string[] | null
    }
    const first = parts ? `${head} (\n  ${parts.join(',\n  ')}\n)${tail ?? ''}` : head
    return { kind, name, sql: [first, ...(statements ?? [])].map((statement) => `${statement};\n`).join('') }
  })
}
