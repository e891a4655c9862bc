import { vi } from 'vitest'
import { runDoctor } from '../../src/app/cli/doctor/doctor.ts'
import type { Environment } from '../../src/infra/config/config.ts'

/** What `mason doctor` prints with these settings, in this process: `process/cli` has the command. */
export const askDoctor = async (env: Environment): Promise<{ code: number; stdout: string }> => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    const code = await runDoctor({ role: 'serve' }, env)
    return { code, stdout: write.mock.calls.map(([text]) => String(text)).join('') }
  } finally {
    write.mockRestore()
  }
}
