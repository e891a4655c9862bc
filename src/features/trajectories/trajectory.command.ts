import { defineCommand } from '../command-definition.ts'

type Flags = { url?: string; token?: string; business?: string; format?: string }

export default defineCommand({
  name: 'trajectory',
  description: 'print what a run thought, called, got back and answered',
  add(trajectory, { addTargetOptions, withAdmin }) {
    addTargetOptions(trajectory.argument('<run>'))
      .option('--business <id>', 'business of the run (with an admin token; absent: default)')
      .option('--format <format>', 'xml (the language of the dialogue), openai or atif', 'xml')
      .action((id: string, { business, format, ...target }: Flags) =>
        withAdmin(target, ({ printBody }) =>
          printBody(`/v1/runs/${encodeURIComponent(id)}/trajectory`, { business_id: business, format }),
        ),
      )
  },
})
