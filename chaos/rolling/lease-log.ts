import pg from 'pg'

/** What the database itself saw of leases: written by a trigger, so that no process of the runtime is asked. */
export type LeaseLog = {
  /** Runs that workers gave back. */
  handedBack: number
  /** Milliseconds from each hand-back to the next claim, sorted. */
  gapsMs: number[]
  /** Claims of runs whose worker had not let go: its lease had to lapse first. */
  lapsed: number
  /** The most claims in a row without a new action; 1 when each got one. */
  mostStalls: number
}

const install = `
  CREATE TABLE mason.lease_log (run_id text, epoch int, what text, stalls int, held_before boolean,
    at timestamptz DEFAULT clock_timestamp());
  CREATE FUNCTION mason.log_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
  BEGIN
    INSERT INTO mason.lease_log (run_id, epoch, what, stalls, held_before) VALUES (NEW.run_id, NEW.epoch,
      CASE WHEN NEW.epoch > OLD.epoch THEN 'claim' ELSE 'hand_back' END, NEW.stalls, OLD.lease_owner IS NOT NULL);
    RETURN NULL;
  END $$;
  CREATE TRIGGER lease_log AFTER UPDATE OF epoch, lease_owner ON mason.runs FOR EACH ROW
    WHEN (NEW.epoch > OLD.epoch OR (NEW.lease_owner IS NULL AND OLD.lease_owner IS NOT NULL AND NEW.status = 'queued'))
    EXECUTE FUNCTION mason.log_lease()`

const asOwner = async <T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export const installLeaseLog = (databaseUrl: string): Promise<void> =>
  asOwner(databaseUrl, async (client) => void (await client.query(install)))

export const readLeaseLog = (databaseUrl: string): Promise<LeaseLog> =>
  asOwner(databaseUrl, async (client) => {
    const { rows } = await client.query<{ lapsed: number; stalls: number; handed_back: number }>(
      `SELECT count(*) FILTER (WHERE what = 'claim' AND held_before)::int AS lapsed,
         count(*) FILTER (WHERE what = 'hand_back')::int AS handed_back,
         max(stalls) FILTER (WHERE what = 'claim') AS stalls FROM mason.lease_log`,
    )
    const gaps = await client.query<{ ms: number }>(
      `SELECT (extract(epoch FROM c.at - h.at) * 1000)::float8 AS ms FROM mason.lease_log h
       JOIN mason.lease_log c ON c.run_id = h.run_id AND c.epoch = h.epoch + 1 AND c.what = 'claim'
       WHERE h.what = 'hand_back' ORDER BY ms`,
    )
    return {
      handedBack: rows[0]?.handed_back ?? 0,
      gapsMs: gaps.rows.map(({ ms }) => ms),
      lapsed: rows[0]?.lapsed ?? 0,
      mostStalls: rows[0]?.stalls ?? 0,
    }
  })
