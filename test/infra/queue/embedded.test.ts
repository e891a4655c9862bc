import { describe, expect, it } from 'vitest'
import { embedded, scope, until, wakeUp } from './harness.ts'

describe('queues on the database of the app', () => {
  const harness = embedded()
  const { open } = scope(harness)

  it('never mixes its statements with those of the app’s transactions', async () => {
    const { pglite } = harness
    await pglite.exec('DROP TABLE IF EXISTS app_rows; CREATE TABLE app_rows (id int)')
    const { path } =
      (await pglite.query<{ path: string }>(`SELECT current_setting('search_path') AS path`)).rows[0] ?? {}
    const queues = await open()
    let heard = 0
    await queues.onWakeUp(
      async () => {
        heard++
        await pglite.query('SELECT 1')
      },
      { concurrency: 8 },
    )
    const ringing = Promise.all(
      Array.from({ length: 100 }, (_, index) => queues.wake(wakeUp(`run-${index}`))),
    )
    for (let id = 0; id < 50; id++) {
      const undone = pglite.transaction(async (transaction) => {
        const seen = async () =>
          (
            await transaction.query<{ xid: string; path: string }>(
              `SELECT pg_current_xact_id()::text AS xid, current_setting('search_path') AS path`,
            )
          ).rows[0]
        const first = await seen()
        await transaction.query('INSERT INTO app_rows VALUES ($1)', [id])
        expect(await seen()).toEqual(first)
        expect(first?.path).toBe(path)
        throw new Error('roll back')
      })
      await expect(undone).rejects.toThrow('roll back')
    }
    await ringing
    await until(() => heard === 100, 'every wake-up, though all transactions were rolled back')
    expect((await pglite.query('SELECT * FROM app_rows')).rows).toEqual([])
  })

  it('fails within a second when called inside an open transaction, and the wake-up still arrives', async () => {
    const queues = await open()
    const heard: string[] = []
    await queues.onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency: 1 })
    await harness.pglite.transaction(async () => {
      await expect(queues.wake(wakeUp('inside'))).rejects.toMatchObject({ code: 'queue_unavailable' })
      expect(await queues.ping()).toMatchObject({ ok: false })
    })
    await until(() => heard.length === 1, 'the wake-up')
  })

  it('picks up at once the wake-ups of a dead process, and has no intake', async () => {
    const dying = await open()
    expect(dying.openIntake).toBeNull()
    let started = 0
    await dying.onWakeUp(
      async () => {
        started++
        await new Promise(() => {})
      },
      { concurrency: 1 },
    )
    await dying.wake(wakeUp('orphan'))
    await until(() => started === 1, 'the first try')
    await dying.close(0)
    const queues = await open()
    const heard: string[] = []
    await queues.onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency: 1 })
    // not by the look for stalled jobs, which comes every 15 s
    await until(() => heard.length === 1, 'the wake-up again')
    expect(heard).toEqual(['orphan'])
  })
})
