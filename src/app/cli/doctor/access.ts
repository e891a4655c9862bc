import { listWeakSecrets } from '../weak-secrets.ts'
import { type DoctorCheck, pass } from './check.ts'

/** Which secrets could be guessed, and what a caller without a token sees or puts in. */
export const checkAccess: DoctorCheck = async (config) => {
  const { access, auth, redisUrl, queueSecrets } = config
  const weak = listWeakSecrets(config).map(({ problem, remedy }) => pass(problem, remedy))
  const open = [
    ...(access.metrics === 'open' ? ['/metrics'] : []),
    ...(access.docs === 'open' ? ['/docs'] : []),
  ]
  return [
    ...(weak.length === 0 ? [pass('the secrets of the settings are long and random')] : weak),
    pass(
      open.length === 0
        ? '/metrics and /docs are closed'
        : `open without a token: ${open.join(' and ')} (MASON_METRICS, MASON_DOCS)`,
    ),
    ...(auth === 'off' ? [pass('auth is off: every program of this machine has full access')] : []),
    ...(redisUrl === null || queueSecrets.length > 0
      ? []
      : [
          pass(
            'jobs of the public queue are not signed: who can write to Redis acts for any business',
            'set MASON_QUEUE_SECRET for workers and producers',
          ),
        ]),
  ]
}
