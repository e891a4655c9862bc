import pg from 'pg'
import { randomBytes } from 'node:crypto'
import { migratePostgres, openPostgres } from '/work/main/src/infra/database/postgres.ts'
import { claimNext } from '/work/main/src/infra/runs/claim.ts'
const admin = new pg.Client({connectionString: process.env.TEST_DATABASE_URL}); await admin.connect()
const name = 'mason_perf_'+randomBytes(3).toString('hex')
await admin.query(`CREATE DATABASE ${name}`)
const url = new URL(process.env.TEST_DATABASE_URL!); url.pathname='/'+name
await migratePostgres(url.href)
const db = await openPostgres({url:url.href, migrate:false})
const fill = async (tenants:number, sessions:number, turns:number) => {
  for (const t of ['outbox','sessions','idempotency','businesses']) await db.query(`DELETE FROM ${t}`)
  await db.query(`INSERT INTO businesses (tenant) SELECT 't'||t FROM generate_series(1,$1) t`,[tenants])
  await db.query(`INSERT INTO sessions (tenant,session_id,user_id,turns) SELECT 't'||t, 's'||s, 'u', $3 FROM generate_series(1,$1::int) t, generate_series(1,$2::int) s`,[tenants,sessions,turns])
  await db.query(`INSERT INTO runs (tenant,run_id,session_id,turn,status,expires_at) SELECT 't'||t,'r'||t||'-'||s||'-'||n,'s'||s,n,'queued',clock_timestamp()+interval '1 day' FROM generate_series(1,$1::int) t, generate_series(1,$2::int) s, generate_series(1,$3::int) n`,[tenants,sessions,turns])
  await db.query(`INSERT INTO run_requests SELECT tenant,run_id,'u','{}','{}' FROM runs`)
}
const time = async (what:string, n:number) => { const t=performance.now(); for (let i=0;i<n;i++) if(!(await claimNext(db,'w',30000))) throw new Error('none'); console.log(what, ((performance.now()-t)/n).toFixed(2),'ms per claim') }
await fill(1,10,1); await time('10 queued', 5)
await fill(1,10000,1); await time('10k queued, own sessions', 50)
await fill(1,100,100); await time('100 sessions x 100 turns', 50)
await fill(200,10,5); await time('200 businesses with a backlog', 50)
await fill(1000,5,2); await time('1000 businesses with a backlog', 50)
await db.close(); await admin.query(`DROP DATABASE ${name} WITH (FORCE)`); await admin.end()
